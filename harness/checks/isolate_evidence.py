"""What each of two tenants saw of a prefix, and what that says: a pure function of counts and times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from harness.checks.sight import SOONER

Role = Literal["first", "same", "other", "none", "none-again", "after-none"]
"""Who asks for the prefix: the tenant that is the first to send it; the same one again; another one; somebody without a
key; that one again; and a further tenant, after it was sent without a key."""
APART: tuple[Role, ...] = ("other", "none", "after-none")
"""Those that must see nothing."""
TOGETHER: tuple[Role, ...] = ("same", "none-again")
"""Those that must see the prefix, or else not seeing it means nothing."""

Verdict = Literal["isolated", "shared", "timing-differs", "unclear"]
EXIT_CODES: Mapping[Verdict, int] = {"isolated": 0, "shared": 1, "timing-differs": 2, "unclear": 2}


@dataclass(frozen=True, slots=True)
class Asked:
    """One request for a prefix; None: not told."""

    role: Role
    cached_tokens: int | None
    ttft_ms: float | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Whether each role saw the prefix; None: not known, or not the same in all rounds."""

    by_tokens: Mapping[Role, bool | None]
    by_clock: Mapping[Role, bool | None]

    def saw(self, role: Role) -> bool | None:
        """By tokens, where these are told, else by the clock."""
        told = self.by_tokens.get(role)
        return self.by_clock.get(role) if told is None else told

    @property
    def source(self) -> Literal["tokens", "clock", None]:
        """What shows that the same tenant is served from the cache."""
        if self.by_tokens.get("same") is not None:
            return "tokens"
        return "clock" if self.by_clock.get("same") is not None else None


def evidence(asked: Sequence[Asked], prefix_tokens: int, head_tokens: int) -> Evidence:
    """`head_tokens`: at the beginning of every prompt, which may be hit by anybody."""
    roles = list(dict.fromkeys(one.role for one in asked))
    counts = {role: [one.cached_tokens for one in asked if one.role == role] for role in roles}
    times = {role: [one.ttft_ms for one in asked if one.role == role] for role in roles}
    return Evidence(
        {role: _saw_by_tokens(counts[role], prefix_tokens, head_tokens) for role in roles},
        _saw_by_clock(times),
    )


def middle(values: Sequence[float | None]) -> float | None:
    """The median; None if one is not known, or if there is none."""
    known = [value for value in values if value is not None]
    return median(known) if known and len(known) == len(values) else None


def judge(shown: Evidence) -> tuple[Verdict, tuple[Role, ...]]:
    """The verdict on tenants that have a key each, and the roles that it rests on.

    Only a pair counts: those with the same key see the prefix, and those with another one, or none, do not.
    """
    leaks = tuple(role for role in APART if shown.saw(role))
    if shown.saw("same") and leaks:
        return "shared", leaks
    unproven = tuple(role for role in TOGETHER if not shown.saw(role))
    unknown = tuple(role for role in APART if shown.saw(role) is None)
    if unproven or unknown:
        return "unclear", unproven + unknown
    quick = tuple(role for role in APART if shown.by_clock.get(role))
    return ("timing-differs", quick) if quick else ("isolated", APART)


def _saw_by_tokens(counts: Sequence[int | None], prefix_tokens: int, head_tokens: int) -> bool | None:
    known = [count for count in counts if count is not None]
    if not known or len(known) < len(counts):
        return None
    if max(known) <= head_tokens:
        return False
    return True if min(known) > max(head_tokens, prefix_tokens / 2) else None


def _saw_by_clock(times: Mapping[Role, Sequence[float | None]]) -> dict[Role, bool | None]:
    """A role saw the prefix if its times are nearer, as a ratio, to those of the same tenant than to the first's."""
    first = [time for time in times.get("first", ()) if time is not None]
    same = [time for time in times.get("same", ()) if time is not None]
    all_known = all(None not in values for values in times.values())
    if not first or not same or not all_known or min(first) <= SOONER * max(same):
        return dict.fromkeys(times, None)
    limit = (median(first) * median(same)) ** 0.5
    found: dict[Role, bool | None] = {}
    for role, values in times.items():
        is_quick = {value < limit for value in values if value is not None}
        found[role] = is_quick.pop() if len(is_quick) == 1 else None
    return found
