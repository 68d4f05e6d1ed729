"""Whether the engine's counters and its answers to single requests tell the same story, to the token."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from harness.analysis.columns import stretches
from harness.analysis.counters import CounterRate
from harness.analysis.run import LOAD


@dataclass(frozen=True, slots=True)
class Comparison:
    """One number, counted twice; None: one side does not tell."""

    counters: int | None
    """Delta of the engine's counter."""
    requests: int | None
    """Sum over the requests that report it; None if none does."""
    unknown_requests: int
    """Requests sent that report nothing."""
    difference: int | None
    """counters - requests."""
    rounding: int = 0
    """How far the delta may be off, as the engine's page rounds long numbers."""

    @property
    def agrees(self) -> bool:
        """Both sides tell, and differ by no more than the page's rounding."""
        return self.difference is not None and abs(self.difference) <= self.rounding


@dataclass(frozen=True, slots=True)
class Agreement:
    """Counters against rows, over the requests sent between the two scrapes."""

    requests: int
    cached: Comparison
    prompt: Comparison
    external_cached_tokens: int | None
    """Tokens that came from a cache outside the engine, by its counters; the counter of cached tokens has none of
    them, the engine's answers have them all. None: not known."""
    reason: str | None
    """Why nothing can be compared; None if something can."""

    def sentence(self) -> str:
        """What a person needs to know of it, in one line."""
        if self.reason is not None:
            return f"cannot be compared: {self.reason}"
        if self.cached.agrees and self.prompt.agrees:
            rounding = max(self.cached.rounding, self.prompt.rounding)
            text = (
                f"equal within the rounding of the metrics page, {rounding:,} tokens" if rounding else "exactly equal"
            )
        else:
            text = f"{_words('cached', self.cached)}; {_words('prompt', self.prompt)}"
            if self.external_cached_tokens:
                text += f"; {self.external_cached_tokens:,} cached tokens from an external cache are counted apart"
        unknown = max(self.cached.unknown_requests, self.prompt.unknown_requests)
        return f"{text} ({unknown} of {self.requests} requests report no count)" if unknown else text


def agreement(requests: pd.DataFrame, counted: CounterRate, external_cached_tokens: int | None = None) -> Agreement:
    """Compare with all requests sent, of any status: the engine counts a cancelled request's tokens as well.

    Since warmup_end these are the requests of the load, its ramp included; since before, all that were sent after that
    scrape.
    """
    n, known = 0, {"cached_tokens": 0, "prompt_tokens": 0}
    sums = dict(known)
    for part in stretches(len(requests)):
        some = requests.iloc[part]
        is_sent = some["t_send"].notna()
        between = some["t_send"] >= counted.since_ns if counted.since == "before" else some["phase"].isin(LOAD)
        sent = some[(is_sent & between).to_numpy(dtype=bool, na_value=False)]
        n += len(sent)
        for name in known:
            known[name] += int(sent[name].count())
            sums[name] += int(sent[name].sum())
    of_rows = {name: (n - known[name], sums[name] if known[name] else None) for name in known}
    cached = _compare(counted.cached_tokens, counted.cached_rounding, *of_rows["cached_tokens"])
    prompt = _compare(counted.prompt_tokens, counted.prompt_rounding, *of_rows["prompt_tokens"])
    return Agreement(n, cached, prompt, external_cached_tokens, _reason(counted, cached, prompt))


def _compare(counters: int | None, rounding: int, unknown: int, requests: int | None) -> Comparison:
    difference = None if counters is None or requests is None else counters - requests
    return Comparison(counters, requests, unknown, difference, rounding)


def _reason(counted: CounterRate, cached: Comparison, prompt: Comparison) -> str | None:
    if cached.difference is not None or prompt.difference is not None:
        return None
    if counted.cached_tokens is None and counted.prompt_tokens is None:
        return counted.reason
    return "no request reports its tokens"


def _words(name: str, compared: Comparison) -> str:
    if compared.difference is None:
        return f"{name}: not known"
    if compared.agrees:
        return f"{name}: equal"
    more = "more" if compared.difference > 0 else "fewer"
    return f"{name}: counters {abs(compared.difference):,} tokens {more}"
