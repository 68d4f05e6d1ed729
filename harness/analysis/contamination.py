"""Signs that a target's cache was not cold, or that somebody else used the target during the run."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from harness.analysis.agreement import Agreement, Comparison
from harness.analysis.columns import stretches
from harness.analysis.crowd import Crowd, find_crowd
from harness.analysis.numbers import count
from harness.analysis.pages import Replica
from harness.analysis.request_log import Coverage, LoggedRequest, RequestLog
from harness.analysis.run import TargetRun

CHANCE_TOKENS = 3
"""First words that a new text may share with one of the many before it, the words being few."""
_COLD = ("nonce", "reset", "salt")
"""First words of a target's `cold_start` where its cache should hold nothing of the load's texts."""
_VLLM_COUNTS_ONCE = (0, 27)
"""The release from which on vLLM counts a prompt once, however often it tries to schedule it."""


@dataclass(frozen=True, slots=True)
class UnexplainedHits:
    """Cached tokens of measured requests beyond all that this run had sent to the target before."""

    requests: int
    tokens: int
    compared: int
    """Measured requests that report what they hit."""


@dataclass(frozen=True, slots=True)
class UnexplainedCounts:
    """What the engine's counters have beyond the most that the requests of this run can explain."""

    prompt_tokens: int | None
    """0: nothing. None: not known; `Summary.agreement` says why."""
    cached_tokens: int | None
    """Those among them that came from the cache, as far as that is known."""


@dataclass(frozen=True, slots=True)
class Contamination:
    """All of one target; `problems` and `notes` say what was found in words."""

    hits: UnexplainedHits
    counts: UnexplainedCounts
    crowd: Crowd | None
    """None: no scrape shows one, or the engine does not tell."""
    problems: tuple[str, ...]
    notes: tuple[str, ...]


def contamination(run: TargetRun, log: RequestLog, pages: Sequence[Replica], counted: Agreement) -> Contamination:
    """`log` has the requests of `run`, `pages` are its metrics, `counted` compares its counters with its requests."""
    requests = run.rows.read("t_send", "prompt_tokens", "planned_prompt_tokens", "cached_tokens")
    off_plan_tokens = _off_plan(requests)
    hits = unexplained_hits(log, _allowance(run) + off_plan_tokens, _longest(run, "tail"))
    counts = _unexplained_counts(requests, counted, off_plan_tokens)
    crowd = find_crowd(run, pages)
    found = [
        (run.target.cold_start.startswith(_COLD), _hits_sentence(hits, log.coverage)),
        (_counts_once(run.target.identity), _counts_sentence(counts, run.target.identity)),
        (True, crowd.sentence() if crowd else None),
    ]
    return Contamination(
        hits,
        counts,
        crowd,
        problems=tuple(sentence for is_problem, sentence in found if sentence and is_problem),
        notes=tuple(sentence for is_problem, sentence in found if sentence and not is_problem),
    )


# --- hits ----------------------------------------------------------------------------------------------------------


def unexplained_hits(log: RequestLog, allowance_tokens: int, tail_tokens: int = 0) -> UnexplainedHits:
    """Of each measured request, the cached tokens beyond the most that other requests of the run explain.

    Explained is the longest prefix that a request shares with another one which was sent before its own first token
    (whichever of the two the engine took first). Where that is all of the other's prompt, but for the `tail_tokens`
    with which the template ends it, the answer is explained as well. Requests that exceed this by no more than
    `allowance_tokens` do not count.
    """
    explained = _explained(log.requests, log.rows, tail_tokens)
    rows = log.rows[["phase", "cached_tokens"]].assign(explained=explained)
    rows = rows[(rows["phase"] == "measure") & rows["cached_tokens"].notna()]
    excess = rows["cached_tokens"] - rows["explained"]
    excess = excess[excess > allowance_tokens]
    return UnexplainedHits(len(excess), int(excess.sum()), len(rows))


def _explained(requests: Sequence[LoggedRequest], rows: pd.DataFrame, tail_tokens: int) -> list[int]:
    """Tokens, one number for each request."""
    first: dict[int, int] = {}
    second: dict[int, int] = {}
    """By item: the first two requests that were sent with it."""
    for number, request in enumerate(requests):
        for identity, _ in request.prompt:
            if first.setdefault(identity, number) != number:
                second.setdefault(identity, number)
    answered = _answered(requests, rows, tail_tokens)
    explained = []
    for number, request in enumerate(requests):
        decided_ns = math.inf if request.first_ns is None else request.first_ns
        end = beyond = 0
        for identity, length in request.prompt:
            other = first[identity] if first[identity] != number else second.get(identity)
            if other is None or requests[other].sent_ns >= decided_ns:
                break
            end += length
            # Whose prompt ends where this one does has the same tokens, and its answer is no part of them.
            if identity in answered and end < request.prompt_tokens - tail_tokens:
                place = bisect_left(answered[identity], (decided_ns, 0))
                beyond = max(beyond, answered[identity][place - 1][1] if place else 0)
        explained.append(max(end, beyond))
    return explained


def _answered(
    requests: Sequence[LoggedRequest], rows: pd.DataFrame, tail_tokens: int
) -> dict[int, list[tuple[int, int]]]:
    """By item: (when sent, tokens of prompt and answer) of requests whose prompts end with it, or with a tail behind
    it; each longer than the one before."""
    answered: dict[int, list[tuple[int, int]]] = {}
    answers = rows["output_tokens"].fillna(rows["planned_output_tokens"]).fillna(0).tolist()
    for request, answer in zip(requests, answers, strict=True):
        whole, behind = request.prompt_tokens + answer, 0
        for identity, length in reversed(request.prompt):
            if behind > tail_tokens:
                break
            marks = answered.setdefault(identity, [])
            if not marks or marks[-1][1] < whole:
                marks.append((request.sent_ns, whole))
            behind += length
    return answered


def _allowance(run: TargetRun) -> int:
    """Tokens of the template that cannot be placed, and first words by chance."""
    around = sum(_longest(run, piece) for piece in ("head", "between", "tail"))
    return around + int(_template(run).get("opener_tokens", 0)) + CHANCE_TOKENS


def _longest(run: TargetRun, piece: str) -> int:
    """Tokens of the longest piece of the template of that kind; 0 if the template is not known."""
    lengths: dict[str, int] = _template(run).get(piece, {})
    return max(lengths.values(), default=0)


def _template(run: TargetRun) -> dict[str, Any]:
    template: dict[str, Any] = run.target.lexicon.get("template", {})
    return template


def _off_plan(requests: pd.DataFrame) -> int:
    """Most that a prompt's length differs from its plan."""
    most = 0
    for part in stretches(len(requests)):
        some = requests.iloc[part]
        off = (some["prompt_tokens"] - some["planned_prompt_tokens"]).dropna().abs()
        most = max(most, int(off.max())) if len(off) else most
    return most


def _hits_sentence(hits: UnexplainedHits, coverage: Coverage) -> str | None:
    if not hits.requests:
        return None
    return (
        f"{hits.requests} of {hits.compared} requests{coverage.beside()} hit {count(hits.tokens)} tokens that no "
        "recorded request of this run had sent to this target before: the cache was not cold (an earlier run with the "
        "same texts, or another client)"
    )


# --- counters ------------------------------------------------------------------------------------------------------


def _unexplained_counts(requests: pd.DataFrame, counted: Agreement, off_plan_tokens: int) -> UnexplainedCounts:
    """A request that reports nothing (it failed, or was cancelled) may have cost all of its planned prompt."""
    prompt = _beyond(counted.prompt, requests, "prompt_tokens", off_plan_tokens)
    cached = _beyond(counted.cached, requests, "cached_tokens", off_plan_tokens)
    return UnexplainedCounts(prompt, None if cached is None or prompt is None else min(cached, prompt))


def _beyond(compared: Comparison, requests: pd.DataFrame, column: str, off_plan_tokens: int) -> int | None:
    planned = requests.loc[requests["t_send"].notna() & requests[column].isna(), "planned_prompt_tokens"]
    if compared.counters is None or planned.isna().any():
        return None
    most = (compared.requests or 0) + compared.rounding + int(planned.sum()) + len(planned) * off_plan_tokens
    return max(0, compared.counters - most)


def _counts_once(identity: Mapping[str, Any]) -> bool:
    if identity.get("engine") != "vllm":
        return True
    release = re.match(r"(\d+)\.(\d+)", identity.get("version") or "")
    return release is not None and (int(release[1]), int(release[2])) >= _VLLM_COUNTS_ONCE


def _counts_sentence(counts: UnexplainedCounts, identity: Mapping[str, Any]) -> str | None:
    if not counts.prompt_tokens:
        return None
    more = f"{count(counts.prompt_tokens)} prompt tokens"
    if counts.cached_tokens:
        more += f" ({count(counts.cached_tokens)} of them cached)"
    why = "another client used it, or rows of the run are missing"
    if not _counts_once(identity):
        why += ", or it counted prompts again, as vLLM before 0.27 does at each attempt to schedule one"
    return f"the server's counters count {more} more than this run's requests explain: {why}"
