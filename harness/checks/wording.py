"""The verdicts in words: what was seen, what it means, what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.checks.prediction import Observation, loses_a_block
from harness.engines.base import Need

NAMES = {
    "cold": "a prompt that was never sent before",
    "repeat": "an exact repeat",
    "half": "a prompt that shares its first half",
    "part": "a prompt that shares its first two fifths",
    "ids_cold": "a prompt of token ids that were never sent before",
    "ids_repeat": "an exact repeat as token ids",
}
_DRIFT = (
    "the chat template (or a proxy) puts in something that changes, such as a clock or a random id, and nothing behind "
    "that can be hit; start the server with a template that does not"
)
_METRICS: Need = "metrics"


def works(observed: Sequence[Observation], told: int | None, found: Sequence[int]) -> str:
    if told is not None:
        rule = f"as predicted for {_cache(told)}"
    elif len(found) == 1:
        rule = f"which fits {_cache(found[0])}"
    else:
        rule = "which several block sizes explain"
    return f"The cache works: {_hits(observed)}, {rule}."


def reporting_off(observed: Sequence[Observation], advice: Mapping[Need, str]) -> str:
    return (
        f"The cache works, by the engine's counter alone ({_hits(observed)}): the answers do not say how many of their "
        f"prompt tokens were cached, so hits cannot be told request by request; {_remedy(advice, 'cached_tokens')}."
    )


def sooner(times: float, advice: Mapping[Need, str]) -> str:
    return (
        "The cache probably works, but neither the answers nor a counter of the engine say how many tokens were "
        f"cached: the first token of an exact repeat came {times:.1f} times sooner than that of the cold prompt, which "
        f"is a hint and no count; {_remedy(advice, 'cached_tokens')}."
    )


def no_evidence(times: float | None, advice: Mapping[Need, str]) -> str:
    if times is None:
        clock = "no first token was seen to compare times by"
    else:
        clock = f"the first token of an exact repeat took {1 / times:.2f} times as long as that of the cold prompt"
    return (
        "Nothing shows whether the cache works: the answers do not say how many of their prompt tokens were cached "
        f"({_remedy(advice, 'cached_tokens')}), the engine's counter of cached tokens is not there or could not be read"
        f"{f' ({advice[_METRICS]})' if _METRICS in advice else ''}, and {clock}."
    )


def too_short(repeat: Observation, told: int) -> str:
    return (
        f"A hit cannot show: the longest prompt that the context allows here has {repeat.length} tokens, less than one "
        f"block of {told} and the last token; allow more context at the server."
    )


def no_room(context_tokens: int) -> str:
    return (
        f"Nothing was sent: a context of {context_tokens} tokens has no room for prompts that show a hit; allow more "
        "at the server."
    )


def another_replica(short: Observation, replicas: int) -> str:
    return (
        f"{_capital(NAMES[short.name])} hit {_counts(short)} of {short.length} tokens, but it may have gone to another "
        f"of the {replicas} replicas behind the URL than the prompt before it: check each replica by its own URL."
    )


def drift_of_length(cold: Observation, repeat: Observation) -> str:
    return (
        f"Two identical chat requests were counted as {cold.prompt_tokens} and {repeat.prompt_tokens} prompt tokens: "
        f"{_DRIFT}."
    )


def drift_of_text(repeat: Observation, ids: Observation) -> str:
    return (
        f"The cache works, as the exact repeat of {ids.length} token ids hit {_counts(ids)}, but an exact repeat of a "
        f"chat hit only {_counts(repeat)} of {repeat.length}: {_DRIFT}."
    )


def caching_off(
    repeat: Observation, told: int | None, prefix_caching: bool | None, advice: Mapping[Need, str], tried_ids: bool
) -> str:
    sentences = [f"Prefix caching is off: of {repeat.length} prompt tokens an exact repeat hit {_sources(repeat)}."]
    if prefix_caching is not None:
        state = "on: its log may tell why nothing was hit" if prefix_caching else "off"
        sentences.append(f"The server says that it is {state}.")
    if told is None:
        sentences.append(f"Or its blocks have more than {repeat.length - 1} tokens, which this server does not tell.")
    if not tried_ids:
        sentences.append("Or its chat template begins with something that changes, which only token ids could tell.")
    remedy = _capital(advice.get("caching", "start the server with prefix caching on"))
    return " ".join([*sentences, f"{remedy}."])


def differs(
    observed: Sequence[Observation],
    assumed: int | None,
    told: int | None,
    found: Sequence[int],
    lengths: Sequence[Observation],
) -> str:
    """`assumed`: the block size that hits were held against; `lengths`: prompts that were not counted as planned."""
    if lengths:
        return (
            f"The engine counted {lengths[0].length} prompt tokens where {lengths[0].planned_tokens} were sent, so "
            "hits cannot be predicted: it cuts prompts short, or counts something else."
        )
    if assumed is None:
        return f"Something was hit, but no block size explains how much: {_hits(observed)}.{_hint(observed, 1, found)}"
    rule = f"what is predicted for {_cache(assumed)}" if told is not None else _cache(assumed)
    wrong = [_difference(one, assumed) for one in observed if not all(one.fits(count, assumed) for count in one.counts)]
    return f"What was hit differs from {rule}: {'; '.join(wrong)}.{_hint(observed, assumed, found)}"


def _difference(one: Observation, assumed: int) -> str:
    least, greatest = one.bounds(assumed)
    expected = f"{least}" if least == greatest else f"{least} to {greatest}"
    return f"{NAMES[one.name]} hit {_sources(one)}, {expected} expected"


def _hint(observed: Sequence[Observation], assumed: int, found: Sequence[int]) -> str:
    """The likely reason, as a further sentence, where the counts suggest one."""
    by_name = {one.name: one for one in observed}
    cold, repeat, half = by_name["cold"], by_name["repeat"], by_name["half"]
    answers = [one.fits(one.usage_cached_tokens, assumed) for one in observed if one.usage_cached_tokens is not None]
    if repeat.usage_cached_tokens is not None and all(answers):
        more = [one.counts[1] - one.counts[0] for one in observed if len(one.counts) == 2]
        if min(more, default=0) < 0:
            return " The answers fit: trust them rather than the counter."
        return " The counter counts more than these requests: other clients seem to use the server."
    if not repeat.usage_cached_tokens and repeat.counter_cached_tokens:
        return " The answers report no hit where the counter does: trust the counter."
    if cold.counts and cold.counts[0] > cold.bounds(assumed)[1]:
        return " What was never sent cannot be in the cache: the engine counts something else as cached."
    if 0 < repeat.counts[0] <= cold.most_shared:
        return f" Only what every chat begins with was hit, as if {_DRIFT}."
    if half.counts and not half.counts[0] and repeat.fits(repeat.counts[0], assumed):
        return " Only whole prompts are reused, as models with sliding windows or recurrent layers force the engine to."
    if loses_a_block(observed, assumed) and assumed > 1:
        return " Each hit is a block short, as with speculative decoding (EAGLE, MTP) or with blocks of twice the size."
    return f" Blocks of {found[0]} tokens would explain all of it." if len(found) == 1 else ""


def _hits(observed: Sequence[Observation]) -> str:
    shared = [one for one in observed if one.least_shared and one.counts]
    return ", ".join(f"{NAMES[one.name]} hit {_counts(one)} of {one.length} tokens" for one in shared)


def _counts(one: Observation) -> str:
    return " or ".join(str(count) for count in dict.fromkeys(one.counts)) if one.counts else "an unknown number"


def _sources(one: Observation) -> str:
    """Such as "0 cached by the answer and by the engine's counter"."""
    answer, counter = one.usage_cached_tokens, one.counter_cached_tokens
    if answer is not None and answer == counter:
        return f"{answer} by the answer and by the engine's counter"
    named = [(answer, "by the answer"), (counter, "by the engine's counter")]
    return " and ".join(f"{count} {source}" for count, source in named if count is not None)


def _cache(size: int) -> str:
    return "a cache that matches token by token" if size == 1 else f"a cache with blocks of {size} tokens"


def _remedy(advice: Mapping[Need, str], need: Need) -> str:
    return advice.get(need, "see whether the server has an option for it")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
