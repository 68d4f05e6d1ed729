"""Shows whether a prefix cache works: prefixes asked again, by reports, by counters and by the clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from harness.checks.laboratory import Finding, Laboratory, Unanswered
from harness.checks.prove_evidence import Clock, Counts, Measure, Unrelated, by_counter, by_usage, clock, counts
from harness.checks.prove_file import counted
from harness.checks.prove_plan import AGAIN, COLD, PREFIX_TOKENS, Plan
from harness.checks.prove_verdict import Evidence, Verdict, judge
from harness.checks.prove_wording import Facts, sentence
from harness.checks.sender import Answer
from harness.errors import InputError

LEAST_PREFIXES = 5
"""Of fewer, no interval has the confidence that is wanted."""
ROUNDS, MOST_ROUNDS = 3, 8
"""Unrelated requests of each length before the measured ones: at least, and until times stand still, at most."""
STEADY = 1.25
"""The last `ROUNDS` times of full length stand still if the longest is so many times the shortest at most."""
BUDGET_S = 90.0
"""A prefix whose length nobody asked for is shortened if the whole would take longer."""
LONGER = 8
"""How much longer than a question is the prompt that shows what a token costs."""
COSTS = 2.6
"""Prefixes computed for each one that is measured: cold, the control, half and a tenth."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What `prove` was asked for."""

    prefix_tokens: int | None = None
    """None: `PREFIX_TOKENS`, or what the context and `BUDGET_S` allow."""
    text: str | None = None
    """The prefix itself, in place of words."""
    prefixes: int = LEAST_PREFIXES
    questions: int = 3


@dataclass
class Proof:
    """What was measured at one target."""

    laboratory: Laboratory
    prefix_tokens: int
    unrelated: Unrelated
    exact: bool
    measures: list[Measure] = field(default_factory=list)
    ids_hit: bool | None = None
    failed: int = 0
    """Prefixes that were left out, as a request failed."""
    problem: str = ""
    """Why it was ended early."""
    restarts: str = ""
    """A sentence, if its server was started again in between."""

    @property
    def usage(self) -> Counts:
        return counts(self.measures, by_usage, self.laboratory.identity.granularity_tokens, self.exact)

    @property
    def counter(self) -> Counts:
        return counts(self.measures, by_counter, self.laboratory.identity.granularity_tokens, self.exact)

    @property
    def clock(self) -> Clock:
        return clock(self.measures, self.unrelated)

    @property
    def evidence(self) -> Evidence:
        laboratory, usage, counter = self.laboratory, self.usage, self.counter
        again = [one for one in self.measures if one.name in AGAIN]
        granularity = laboratory.identity.granularity_tokens
        return Evidence(
            usage=usage.state,
            counter=counter.state,
            clock=self.clock.state,
            is_contaminated=bool(usage.contaminated or counter.contaminated),
            ids_hit=self.ids_hit,
            told_on=laboratory.identity.prefix_caching,
            can_report="cached_tokens" in laboratory.engine.advice,
            replicas=max(1, len(laboratory.target.metrics_urls)),
            one_prefix=1 + min(Counter(one.prefix for one in again).values(), default=0),
            fits_block=not again or any(one.expected(granularity) for one in again),
        )

    def judged(self) -> tuple[Verdict, str]:
        """The verdict and its sentence."""
        evidence = self.evidence
        verdict = judge(evidence)
        if not self.measures and self.problem:
            return verdict, f"Could not tell: {self.problem}"
        facts = Facts(
            evidence=evidence,
            usage=self.usage,
            counter=self.counter,
            clock=self.clock,
            prefix_tokens=self.prefix_tokens,
            granularity_tokens=self.laboratory.identity.granularity_tokens,
            advice=self.laboratory.engine.advice,
        )
        return verdict, " ".join(words for words in (sentence(verdict, facts), self.problem, self.restarts) if words)

    def finding(self) -> Finding:
        verdict, words = self.judged()
        return Finding(verdict.kind, verdict.exit_code, words, self.numbers(verdict))

    def numbers(self, verdict: Verdict) -> dict[str, Any]:
        """Plain values."""
        return {
            "reason": verdict.reason,
            "prefix_tokens": self.prefix_tokens,
            "prefixes": len({one.prefix for one in self.measures}),
            "prefixes_left_out": self.failed,
            "usage": asdict(self.usage),
            "counter": asdict(self.counter),
            "clock": asdict(self.clock),
            "ids_hit": self.ids_hit,
            "unrelated": asdict(self.unrelated),
        }


def prove(laboratories: Sequence[Laboratory], asked: Asked) -> list[Proof]:
    """Warm each target up, then measure prefix by prefix, each prefix at one target after the other.

    A target that answers no more is left out from there on: see `Proof.problem`. Raises InputError if the prefix does
    not fit a context.
    """
    provings = [Proving(laboratory, asked) for laboratory in laboratories]
    for proving in provings:
        proving.attempt(proving.warm_up)
    for number in range(2 * asked.prefixes):
        for proving in provings:
            if proving.whole < asked.prefixes:
                proving.attempt(partial(proving.measure, number))
    for proving in provings:
        proving.attempt(proving.try_ids)
        proving.proof.restarts = proving.proof.laboratory.restarts()
    return [proving.proof for proving in provings]


class Proving:
    """A proof in the making."""

    def __init__(self, laboratory: Laboratory, asked: Asked) -> None:
        """Raises InputError if the prefix does not fit the context."""
        text = () if asked.text is None else counted(laboratory.engine, asked.text)
        self._laboratory = laboratory
        self._asked = asked
        self._plan = Plan(laboratory.lexicon, laboratory.content_id, asked.questions, text)
        tokens = sum(tokens for _, tokens in text) or asked.prefix_tokens
        exact = laboratory.lexicon.exact and not text
        self.proof = Proof(laboratory, self._length(tokens), Unrelated((), ()), exact)
        self.whole = 0
        """Prefixes of which all was measured that a comparison needs."""

    def attempt(self, part: Callable[[], None]) -> None:
        """Do a part of it, unless the target answers no more."""
        if self.proof.problem:
            return
        try:
            part()
        except Unanswered as problem:
            self.proof.problem = str(problem)

    def _length(self, wanted: int | None) -> int:
        """Tokens of the prefix, within the context."""
        plan, context = self._plan, self._laboratory.identity.context_tokens
        most = PREFIX_TOKENS if context is None else context - plan.around_tokens
        if most < plan.least_tokens:
            raise InputError(
                f"A context of {context} tokens has no room for a prefix of {plan.least_tokens}, the shortest that "
                "can be measured here: allow more at the server."
            )
        if wanted is None:
            return min(PREFIX_TOKENS, most)
        if wanted < plan.least_tokens:
            raise InputError(f"A prefix of {wanted} tokens is too short: give at least {plan.least_tokens}.")
        if context is not None and wanted > most:
            raise InputError(
                f"A prefix of {wanted} tokens does not fit into a context of {context} with a question: "
                f"give at most {most}."
            )
        return wanted

    def warm_up(self) -> None:
        """Unrelated requests, until their times stand still: a model that has to be loaded, or kernels that have to be
        compiled, make the first ones slow, which is no matter of the cache."""
        full: list[float] = []
        short: list[float] = []
        with self._laboratory.warming():
            first = self._unrelated("load", self._plan.question_tokens)
            self._shorten(
                self._unrelated("loaded", self._plan.question_tokens),
                self._unrelated("longer", LONGER * self._plan.question_tokens),
            )
            for number in range(MOST_ROUNDS):
                full += self._unrelated(f"full-{number}", self.proof.prefix_tokens)
                short += self._unrelated(f"short-{number}", self._plan.question_tokens)
                if len(full) >= ROUNDS and is_steady(full):
                    break
        steady = len(full) >= ROUNDS and is_steady(full)
        if not steady:
            self._laboratory.note(
                f"times did not stand still in {MOST_ROUNDS} rounds of unrelated requests: the server is busy, or slow "
                "at random"
            )
        last = slice(-ROUNDS, None)
        self.proof.unrelated = Unrelated(tuple(full[last]), tuple(short[last]), next(iter(first), None), steady)

    def _unrelated(self, name: str, tokens: int) -> list[float]:
        """The time to its first token in ms; empty if it failed."""
        answer = self._laboratory.chat(name, self._plan.unrelated(name, tokens), counted=False)
        return [answer.ttft_ms] if answer.is_ok and answer.ttft_ms is not None else []

    def _shorten(self, short_ms: Sequence[float], longer_ms: Sequence[float]) -> None:
        """Ask less of a slow server, unless somebody asked for so much: what a token costs is the slope of the two."""
        asked, proof, short = self._asked, self.proof, self._plan.question_tokens
        if asked.prefix_tokens is not None or asked.text is not None or not short_ms or not longer_ms:
            return
        token_s = (longer_ms[0] - short_ms[0]) / 1e3 / ((LONGER - 1) * short)
        estimate_s = token_s * proof.prefix_tokens * COSTS * asked.prefixes
        if estimate_s > BUDGET_S:
            tokens = max(self._plan.least_tokens, int(proof.prefix_tokens * BUDGET_S / estimate_s))
            self._laboratory.note(
                f"the server is slow, so the prefix has {tokens} tokens only; --prefix-tokens asks for more"
            )
            proof.prefix_tokens = tokens

    def measure(self, number: int) -> None:
        """Send all prompts of prefix `number`; it is left out if it cannot be compared."""
        laboratory, proof = self._laboratory, self.proof
        laboratory.group(number)
        measured: list[Measure] = []
        for probe in self._plan.probes(number, proof.prefix_tokens):
            answer = laboratory.chat(f"{number}-{probe.name}", probe.messages)
            if answer.is_ok:
                measured.append(_measure(number, probe.name, probe.least_shared, probe.most_shared, answer))
            elif probe.name in COLD:
                break
        names = {one.name for one in measured}
        if names >= set(COLD) and names & set(AGAIN):
            proof.measures += measured
            self.whole += 1
        else:
            proof.failed += 1

    def try_ids(self) -> None:
        """Where chats were counted and none was hit: send one prompt twice as token ids, past the chat template."""
        laboratory, proof = self._laboratory, self.proof
        states = {proof.usage.state, proof.counter.state}
        if states & {"hit", "some"} or "none" not in states or not laboratory.engine.takes_token_ids:
            return
        messages = self._plan.unrelated("ids", proof.prefix_tokens)
        ids = laboratory.tokens(messages)
        if ids is None:
            return
        laboratory.group(2 * self._asked.prefixes)
        laboratory.ids("ids-cold", ids, messages)
        again = laboratory.ids("ids-repeat", ids, messages)
        if again.is_ok and again.cached_tokens is not None:
            proof.ids_hit = 2 * again.cached_tokens >= len(ids)


def is_steady(times_ms: Sequence[float]) -> bool:
    """Whether the last `ROUNDS` times are alike."""
    last = times_ms[-ROUNDS:]
    return max(last) <= STEADY * min(last)


def _measure(prefix: int, name: Any, least: int, most: int, answer: Answer) -> Measure:
    return Measure(
        prefix=prefix,
        name=name,
        prompt_tokens=answer.prompt_tokens,
        least_shared=least,
        most_shared=most,
        usage_cached_tokens=answer.usage_cached_tokens,
        counter_cached_tokens=answer.counter_cached_tokens,
        ttft_ms=answer.ttft_ms,
    )
