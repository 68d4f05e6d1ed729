"""Whether two runs sent the same: the same lengths, and the same sharing, whatever the texts were."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.compare.sides import Member
from harness.query.views import connect
from harness.record.damage import naming_damage

MOST_REQUESTS = 20_000
"""So many requests, of the first sessions, are looked at: a workload of another seed differs in the first of them."""
_SENT = "FROM requests WHERE target = $target AND phase = 'measure' AND session IS NOT NULL AND path IS NOT NULL"
_LAST = f"SELECT max(session) FROM (SELECT session {_SENT} ORDER BY session LIMIT $most)"
_PATHS = f"""
    SELECT session, turn, planned_output_tokens, path, path_tokens, path_levels
    {_SENT} AND session <= $last
    ORDER BY session, turn LIMIT $most
"""

Segment = tuple[int, int]
"""Content id and tokens."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What a run sent, as far as it is looked at."""

    fingerprint: str
    """Of the scenario: 12 hex digits of sha-256 over all its keys that have an effect."""
    requests: Mapping[tuple[int, int], tuple[int | None, tuple[Segment, ...]]]
    """(session, turn) -> tokens asked for, and the segments without those that the engine or its template decides."""


def sent(member: Member) -> Sent:
    """Content ids are made with a run's nonce, so they tell what is equal within a run, not between two."""
    scenario = member.run.manifest.scenario
    skipped = {"chat template"} | ({"earlier reply"} if scenario.get("replies") == "live" else set())
    with naming_damage([member.run]), connect([member.run]) as connection:
        asked = {"target": member.target.name, "most": MOST_REQUESTS}
        # The last session first: paths are long, and to put all of them in order would take much memory.
        ((last,),) = connection.execute(_LAST, asked).fetchall()
        rows = connection.execute(_PATHS, asked | {"last": last}).fetchall()
    requests = {}
    for session, turn, output_tokens, path, lengths, levels in rows:
        named = zip(path, lengths, levels or [None] * len(path), strict=True)
        segments = tuple((content, tokens) for content, tokens, level in named if level not in skipped)
        requests[session, turn] = output_tokens, segments
    return Sent(_fingerprint(scenario), requests)


def _fingerprint(scenario: Mapping[str, Any]) -> str:
    plain = {key: value for key, value in scenario.items() if key not in ("name", "description")}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Match:
    """How what one run sent fits what another one, the reference, sent."""

    requests: int
    """That both sent, and that were looked at."""
    other_lengths: int
    """Of them, with segments of other lengths, or another length asked for."""
    other_sharing: int
    """Of them, with contents that do not correspond one to one to those of the reference."""

    @property
    def is_same(self) -> bool:
        return self.other_lengths == 0 and self.other_sharing == 0

    def sentence(self) -> str:
        if not self.requests:
            return "no request of one was sent in the other"
        if self.is_same:
            return f"the same lengths and the same sharing in all {self.requests:,} requests that were looked at"
        return (
            f"of {self.requests:,} requests {self.other_lengths:,} have other lengths, and {self.other_sharing:,} "
            "share something else"
        )


def match(reference: Sent, other: Sent) -> Match:
    """Request by request; each content of one must stand for one content of the other wherever it occurs."""
    common = sorted(reference.requests.keys() & other.requests.keys())
    forth: dict[int, int] = {}
    back: dict[int, int] = {}
    lengths = sharing = 0
    for key in common:
        (asked, ours), (other_asked, theirs) = reference.requests[key], other.requests[key]
        if asked != other_asked or [size for _, size in ours] != [size for _, size in theirs]:
            lengths += 1
            continue
        pairs = [(one, another) for (one, _), (another, _) in zip(ours, theirs, strict=True)]
        sharing += any(
            forth.setdefault(one, another) != another or back.setdefault(another, one) != one for one, another in pairs
        )
    return Match(len(common), lengths, sharing)
