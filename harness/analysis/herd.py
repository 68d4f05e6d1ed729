"""Thundering herds: requests that computed a prefix again because the first one with it had not computed it yet."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from harness.analysis.numbers import count
from harness.analysis.pages import clock_time
from harness.analysis.request_log import LoggedRequest, RequestLog

LEAST_TOKENS = 128
"""Fewer are not worth a herd: the template and a few words are computed again all the time."""


@dataclass(frozen=True, slots=True)
class Herd:
    """Requests that were sent while the first one with their prefix had not reached its first token."""

    requests: int
    """The first one included."""
    tokens: int
    """Of that prefix, computed again by the others, summed."""
    start_ns: int
    """When the first one was sent."""
    end_ns: int
    """When the last one was sent."""


@dataclass(frozen=True, slots=True)
class Herds:
    """Of the measured phase."""

    herds: int
    requests: int
    """In one of them or more."""
    tokens: int
    """Computed again, over all herds."""
    unknown: int
    """Requests among them whose answer does not say what they hit: taken for nothing of that prefix."""
    largest: Herd | None
    """By tokens; None: there is no herd."""

    def sentence(self) -> str | None:
        """What a person needs to know of them; None if there is none."""
        if self.largest is None:
            return None
        largest = self.largest
        many = f"{self.requests} requests in {self.herds} herds" if self.herds > 1 else f"{self.requests} requests"
        text = (
            f"thundering herd: {many} were sent before the first one with their prefix had reached its first token, "
            f"and computed {count(self.tokens)} tokens again"
        )
        if self.unknown:
            text += f" at most ({self.unknown} of them do not report what they hit)"
        if self.herds == 1:
            return f"{text}, at {clock_time(largest.start_ns)} UTC"
        return (
            f"{text}; the largest: {largest.requests} requests, {count(largest.tokens)} tokens, "
            f"at {clock_time(largest.start_ns)} UTC"
        )


def find_herds(log: RequestLog, granularity_tokens: int = 1) -> Herds:
    """The herds among the requests of `log`.

    A measured request belongs to one if it computed `LEAST_TOKENS` again at least: tokens that it shares with a request
    sent before, which had not reached its first token yet, and neither with one that had, nor found in the cache (an
    engine may share what is half computed, or let a request wait). Its herd is that of the first request that was
    sent with these tokens. Whole blocks of `granularity_tokens` count, and never a prompt's last token, as no cache has
    more. Requests that never reached a first token are left out: what they computed is not known.
    """
    first: dict[int, int] = {}
    ready_ns: dict[int, int] = {}
    """By item: the first request that was sent with it, and when the first of them had computed it."""
    herds: dict[int, list[tuple[int, int]]] = {}
    unknown = 0
    measured = (log.rows["phase"] == "measure").tolist()
    for number, (request, cached) in enumerate(zip(log.requests, log.rows["cached_tokens"], strict=True)):
        if request.first_ns is None:
            continue
        if measured[number]:
            hit = 0 if pd.isna(cached) else int(cached)
            leader, again = _computed_again(request, hit, first, ready_ns, granularity_tokens)
            if again >= LEAST_TOKENS:
                herds.setdefault(leader, []).append((number, again))
                unknown += pd.isna(cached)
        for identity, _ in request.prompt:
            first.setdefault(identity, number)
            ready_ns[identity] = min(ready_ns.get(identity, request.first_ns), request.first_ns)
    found = [_herd(log, leader, members) for leader, members in herds.items()]
    return Herds(
        herds=len(found),
        requests=len(herds.keys() | {number for members in herds.values() for number, _ in members}),
        tokens=sum(herd.tokens for herd in found),
        unknown=unknown,
        largest=max(found, key=lambda herd: herd.tokens, default=None),
    )


def _computed_again(
    request: LoggedRequest, cached_tokens: int, first: dict[int, int], ready_ns: dict[int, int], granularity_tokens: int
) -> tuple[int, int]:
    """(number of the first request with what this one computed again, how many tokens that is)."""
    leader, ready, shared = -1, 0, 0
    for identity, length in request.prompt:
        if identity not in first:
            break
        shared += length
        if ready_ns[identity] <= request.sent_ns:
            ready = shared
        elif leader < 0:
            leader = first[identity]
    known = max(_whole(ready, granularity_tokens), cached_tokens)
    return leader, _whole(min(shared, request.prompt_tokens - 1), granularity_tokens) - known


def _whole(tokens: int, granularity_tokens: int) -> int:
    return tokens // granularity_tokens * granularity_tokens


def _herd(log: RequestLog, leader: int, members: list[tuple[int, int]]) -> Herd:
    return Herd(
        requests=1 + len(members),
        tokens=sum(tokens for _, tokens in members),
        start_ns=log.requests[leader].sent_ns,
        end_ns=log.requests[members[-1][0]].sent_ns,
    )
