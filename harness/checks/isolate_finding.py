"""What keeps tenants apart, or does not, in words and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.checks.isolate_evidence import EXIT_CODES, Asked, Evidence, Role, Verdict, evidence, judge, middle
from harness.checks.laboratory import Finding
from harness.engines.base import Need

_WHO: Mapping[Role, str] = {
    "first": "the tenant that sent it first",
    "same": "the same tenant",
    "other": "another tenant",
    "none": "a request without a key",
    "none-again": "a second request without a key",
    "after-none": "a tenant after requests without a key",
}


@dataclass(frozen=True, slots=True)
class Boundary:
    """What may keep tenants apart, and what was seen across it."""

    name: str | None
    """The field of a request: cache_salt, extra_key or slot; None: nothing does, and tenants send the same."""
    shown: Evidence
    cached_tokens: Mapping[Role, float | None]
    """Median of each role."""
    ttft_ms: Mapping[Role, float | None]

    @classmethod
    def of(cls, name: str | None, asked: Sequence[Asked], prefix_tokens: int, head_tokens: int) -> Boundary:
        roles = list(dict.fromkeys(one.role for one in asked))
        return cls(
            name,
            evidence(asked, prefix_tokens, head_tokens),
            {role: middle([one.cached_tokens for one in asked if one.role == role]) for role in roles},
            {role: middle([one.ttft_ms for one in asked if one.role == role]) for role in roles},
        )


def finding(
    boundaries: Sequence[Boundary],
    prefix_tokens: int,
    engine: str,
    granularity_tokens: int | None,
    advice: Mapping[Need, str],
) -> Finding:
    """The verdict over all boundaries: that of the first one which does not isolate, or else isolated."""
    numbers: dict[str, Any] = {"prefix_tokens": prefix_tokens}
    for boundary in boundaries:
        numbers |= _numbers(boundary)
    if boundaries[0].name is None:
        verdict, sentence = _without_key(boundaries, prefix_tokens, engine, granularity_tokens, advice)
    else:
        judged = [judge(boundary.shown) for boundary in boundaries]
        verdict = next((one for one, _ in judged if one != "isolated"), "isolated")
        sentence = " ".join(
            _with_key(boundary, *one, prefix_tokens, advice) for boundary, one in zip(boundaries, judged, strict=True)
        )
    return Finding(verdict, EXIT_CODES[verdict], sentence, numbers)


def _with_key(
    boundary: Boundary, verdict: Verdict, roles: Sequence[Role], prefix_tokens: int, advice: Mapping[Need, str]
) -> str:
    tested = f"Tested: requests to one server that differ in {boundary.name} alone, one after the other."
    same = f"of a prefix of {prefix_tokens:,} tokens {_saw(boundary, 'same')}"
    if verdict == "isolated":
        apart = "; ".join(_saw(boundary, role) for role in roles)
        return f"{boundary.name} keeps tenants apart: {same}; {apart}.{_clock(boundary)} {tested}"
    if verdict == "shared":
        apart = "; ".join(_saw(boundary, role) for role in roles)
        return f"{boundary.name} does not keep tenants apart: {same}, and so did others: {apart}. {tested}"
    if verdict == "timing-differs":
        apart = "; ".join(_saw(boundary, role) for role in roles)
        return (
            f"By tokens {boundary.name} keeps tenants apart, but the first token came as soon as for a hit: {apart}. "
            f"{tested}"
        )
    return f"Whether {boundary.name} keeps tenants apart cannot be told: {_lacking(boundary, roles, advice)}. {tested}"


def _lacking(boundary: Boundary, roles: Sequence[Role], advice: Mapping[Need, str]) -> str:
    """What is missing of the pair, as a clause."""
    is_counted = boundary.cached_tokens.get("same") is not None
    if "same" in roles and is_counted and boundary.shown.by_tokens.get("same") is None:
        return f"{_WHO['same']} did not hit alike in all rounds; try it again while nothing else uses the server"
    if boundary.shown.source is None:
        remedy = advice.get("cached_tokens", "see whether the server has an option for it")
        return f"nobody counts cached tokens ({remedy}), and no first token came clearly sooner"
    if "same" in roles:
        remedy = advice.get("caching", "start the server with prefix caching on")
        return f"{_saw(boundary, 'same')}, so that seeing nothing means nothing; {remedy}"
    return "; ".join(_saw(boundary, role) for role in roles)


def _without_key(
    boundaries: Sequence[Boundary],
    prefix_tokens: int,
    engine: str,
    granularity_tokens: int | None,
    advice: Mapping[Need, str],
) -> tuple[Verdict, str]:
    """For an engine that takes no key; a second boundary is the slots of llama.cpp."""
    shared = boundaries[0]
    no_key = f"no field of a request is known by which {engine} keeps tenants apart"
    if not shared.shown.saw("other"):
        roles: tuple[Role, ...] = ("same",) if not shared.shown.saw("same") else ("other",)
        return "unclear", f"What tenants share cannot be told: {_lacking(shared, roles, advice)}; {no_key}."
    rule = ""
    if shared.shown.source == "tokens":
        whole = "token by token" if granularity_tokens == 1 else "in whole blocks"
        if granularity_tokens is not None:
            rule = f" It is shared {whole}{f' of {granularity_tokens:,} tokens' if granularity_tokens > 1 else ''}."
    seen = f"of a prefix of {prefix_tokens:,} tokens that another one had sent, {_saw(shared, 'other')}"
    sentences = [f"All tenants share: {seen}.{rule} {no_key[0].upper()}{no_key[1:]}."]
    remedy = "Give each tenant a server, or begin each one's prompts with a secret text of its own"
    slots = boundaries[1] if len(boundaries) > 1 else None
    if slots is None:
        return "shared", " ".join([*sentences, f"{remedy}."])
    if slots.shown.saw("same") and slots.shown.saw("other") is False:
        sentences.append(f"With a slot each (id_slot) they are kept apart here: {_saw(slots, 'other')}. {remedy}; or")
        sentences.append("let what stands before the server give each a slot, with --cache-ram 0.")
    elif slots.shown.saw("other"):
        sentences.append(
            f"A slot each (id_slot) does not keep them apart: {_saw(slots, 'other')}, out of host memory "
            f"(--cache-ram). {remedy}; or give each a slot, and start llama-server with --cache-ram 0."
        )
    else:
        sentences.append(f"Whether a slot each (id_slot) keeps them apart could not be told. {remedy}.")
    return "shared", " ".join(sentences)


def _saw(boundary: Boundary, role: Role) -> str:
    """Such as "another tenant hit 0 tokens"; by the clock alone, what it waited for."""
    cached, ttft_ms = boundary.cached_tokens.get(role), boundary.ttft_ms.get(role)
    if cached is not None:
        return f"{_WHO[role]} hit {cached:,.0f} tokens"
    if ttft_ms is not None:
        return f"{_WHO[role]} waited {ttft_ms:,.1f} ms for its first token"
    return f"what {_WHO[role]} hit is not told"


def _clock(boundary: Boundary) -> str:
    """Whether times agree, as a further sentence."""
    first, same, other = (boundary.ttft_ms.get(role) for role in ("first", "same", "other"))
    if boundary.shown.by_clock.get("other") is not False or first is None or same is None or other is None:
        return " By the clock alone nothing can be said." if boundary.shown.source == "tokens" else ""
    return (
        f" By the clock too: the first token came after {first:,.1f} ms the first time, {same:,.1f} ms for the same "
        f"tenant, {other:,.1f} ms for another."
    )


def _numbers(boundary: Boundary) -> dict[str, Any]:
    name = boundary.name or "no key"
    numbers: dict[str, Any] = {}
    for role, cached in boundary.cached_tokens.items():
        key = f"{name} {role}".replace("-", "_").replace(" ", "_")
        numbers[f"{key}_cached_tokens"] = cached
        numbers[f"{key}_ttft_ms"] = boundary.ttft_ms[role]
    return numbers
