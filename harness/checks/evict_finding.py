"""From what was measured of an engine's eviction to a verdict, in words and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from harness.checks.evict_measure import Lengths, Measured, Told
from harness.checks.evict_order import Order
from harness.checks.laboratory import Finding
from harness.checks.sight import NoSight
from harness.engines.base import Need

Verdict = Literal["as-claimed", "found", "more", "less", "no-hits", "unseen", "not-found"]
EXIT_CODES: Mapping[Verdict, int] = {
    "as-claimed": 0,
    "found": 0,
    "more": 0,
    "less": 1,
    "no-hits": 1,
    "unseen": 2,
    "not-found": 2,
}

ALIKE = 0.05
"""A capacity is the one that is claimed if it differs by this share of it at most."""
_ORDERS: Mapping[Order, str] = {
    "least-recently-used": "Of two prompts the one that was asked for again stayed, the other went: what was used "
    "longest ago goes first. It is not first in, first out.",
    "first-in-first-out": "Of two prompts the older one went, though it had been asked for again: first in, first out. "
    "It is not least recently used, so asking again keeps nothing.",
    "newest-first": "Neither of two prompts went when the cache was overfilled: it is neither least recently used nor "
    "first in, first out, and gives up what came later.",
    "neither": "Of two prompts both went, the one that was asked for again as well: it is neither least recently used "
    "nor first in, first out.",
}


def no_sight(seen: NoSight, lengths: Lengths, advice: Mapping[Need, str]) -> Finding:
    """Nothing was filled, as a prompt that was sent twice in a row shows no hit."""
    numbers = {"long_tokens": lengths.long}
    if seen.is_counted:
        sentence = (
            f"Nothing is held: a prompt of {lengths.long:,} tokens that was sent twice in a row hit nothing by the "
            f"engine's own count; {advice.get('caching', 'start the server with prefix caching on')}."
        )
        return _finding("no-hits", sentence, numbers)
    remedy = advice.get("cached_tokens", "see whether the server has an option for it")
    sentence = (
        f"Whether anything is held cannot be seen: nobody counts cached tokens ({remedy}), and the first token of a "
        f"prompt of {lengths.long:,} tokens that was sent twice in a row did not come clearly sooner; try a longer one "
        "with --prompt-tokens."
    )
    return _finding("unseen", sentence, numbers)


def found(measured: Measured, told: Told, seconds: float) -> Finding:
    """What the trials say, against what the engine tells; `seconds`: how long they were allowed to take."""
    verdict = _verdict(measured, told)
    sentences = [_room(measured, seconds), *_claims(measured, told), _source(measured)]
    sentences.append(_ORDERS[measured.order] if measured.order is not None else _no_order(measured))
    return _finding(verdict, " ".join(sentence for sentence in sentences if sentence), _numbers(measured, told))


def _finding(verdict: Verdict, sentence: str, numbers: Mapping[str, Any]) -> Finding:
    return Finding(verdict, EXIT_CODES[verdict], sentence, numbers)


def claimed_ratio(measured: Measured, told: Told) -> float | None:
    """Tokens found / tokens claimed; None: one of them is not known, or prompts were too short to fill their slots."""
    if measured.capacity_tokens is None or told.capacity_tokens is None or not _fills(measured, told):
        return None
    return measured.capacity_tokens / told.capacity_tokens


def _fills(measured: Measured, told: Told) -> bool:
    """Whether long prompts leave no room behind them that a longer one would have used."""
    if measured.kind != "prompts" or told.context_tokens is None:
        return True
    return measured.lengths.long >= (1 - ALIKE) * told.context_tokens


def _verdict(measured: Measured, told: Told) -> Verdict:
    if not measured.long.is_found:
        return "not-found"
    ratio = claimed_ratio(measured, told)
    prompts = None if told.slots is None or measured.least_prompts is None else measured.least_prompts / told.slots
    ratios = [one for one in (ratio, prompts) if one is not None]
    if not ratios:
        return "found"
    if min(ratios) < 1 - ALIKE:
        return "less"
    return "more" if max(ratios) > 1 + ALIKE else "as-claimed"


def _room(measured: Measured, seconds: float) -> str:
    first, room = measured.lengths.first(measured.lengths.long), measured.long
    if room.lost is None or not room.is_found:
        bound = "" if room.lost is None else f", and fewer than {room.lost + first:,}"
        return (
            f"How much the cache holds was not found within {seconds:g} s: {measured.held_tokens:,} tokens at least"
            f"{bound}; give more --seconds."
        )
    trial = (
        f"a prompt of {first:,} tokens was held whole after {room.held:,} tokens of others, and not after {room.lost:,}"
    )
    if room.held == 0:
        trial = f"a prompt of {first:,} tokens was lost to the next one"
    if measured.kind == "prompts":
        lengths = f"of {measured.lengths.short:,} tokens as of {measured.lengths.long:,}"
        return (
            f"The cache holds {_prompts(measured.prompts or 0)}, {lengths}: it counts prompts, not tokens. "
            f"With the long ones that is {measured.held_tokens:,} tokens ({trial})."
        )
    end = " Its end went before its beginning." if room.loses_its_end else ""
    if measured.kind == "both":
        return (
            f"The cache is limited in prompts and in tokens: it holds {_prompts(measured.prompts or 0)} of "
            f"{measured.lengths.short:,} tokens, and {measured.held_tokens:,} tokens of long ones ({trial}).{end}"
        )
    return f"The cache holds {measured.held_tokens:,} tokens: {trial}.{end}"


def _claims(measured: Measured, told: Told) -> list[str]:
    """A sentence for each thing that the engine tells of its room."""
    sentences = []
    ratio = claimed_ratio(measured, told)
    if ratio is not None:
        sentences.append(
            f"The engine claims {told.capacity_tokens:,} tokens; {ratio:.1%} of that was found"
            f"{', so a further tier holds the rest' if ratio > 1 + ALIKE else ''}."
        )
    elif told.capacity_tokens is not None and measured.long.is_found:
        sentences.append(
            f"The engine claims {told.capacity_tokens:,} tokens, which prompts so short do not fill: leave out "
            "--prompt-tokens."
        )
    if told.slots is not None:
        sentences += _slots(measured, told, told.slots)
    return sentences


def _slots(measured: Measured, told: Told, slots: int) -> list[str]:
    context = told.context_tokens
    if context is None or not measured.long.is_found:
        of = ""
    elif slots == 1:
        of = f" of {context:,} tokens"
    elif measured.held_tokens < (1 + ALIKE) * context and measured.long_prompts == 1:
        of = f", which share one KV buffer of {context:,} tokens (as with --kv-unified)"
    else:
        of = f" of {context:,} tokens each, {slots * context:,} together"
    sentences = [f"The server has {slots} slot{'s'[: slots > 1]}{of}."]
    least = measured.least_prompts
    if least is not None and least > slots:
        sentences.append(
            f"{_prompts(least - slots)} more than it has slots came back from host memory (--cache-ram), which counts "
            "as held here."
        )
    return sentences


def _source(measured: Measured) -> str:
    if measured.source == "clock":
        return "Hits were told by the clock alone, as no count shows them: a prompt is held or lost, never in part."
    return (
        "" if measured.source == "usage" else "Hits were told by the engine's counter, as answers do not report them."
    )


def _no_order(measured: Measured) -> str:
    if measured.prompts == 1 and measured.kind != "tokens":
        return "With one prompt there is no order in which prompts go."
    return "Which prompt goes first was not found."


def _prompts(number: int) -> str:
    return f"{number} prompt{'s'[: number != 1]}"


def _numbers(measured: Measured, told: Told) -> dict[str, Any]:
    again, once = measured.kept if measured.kept is not None else (None, None)
    return {
        "capacity_tokens": measured.capacity_tokens,
        "held_tokens": measured.held_tokens,
        "lost_tokens": None
        if measured.long.lost is None
        else measured.long.lost + measured.lengths.first(measured.lengths.long),
        "claimed_tokens": told.capacity_tokens,
        "claimed_ratio": claimed_ratio(measured, told),
        "limited_in": measured.kind,
        "prompts": measured.prompts,
        "least_prompts": measured.least_prompts,
        "slots": told.slots,
        "slot_tokens": None if told.slots is None else told.context_tokens,
        "loses_its_end": measured.long.loses_its_end,
        "order": measured.order,
        "kept_of_asked_again": again,
        "kept_of_asked_once": once,
        "evidence": measured.source,
        "short_tokens": measured.lengths.short,
        "long_tokens": measured.lengths.long,
        "requests": measured.requests,
        "sent_tokens": measured.tokens,
    }
