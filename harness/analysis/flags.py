"""What makes the numbers of a target doubtful, each with its verdict: the same in every output.

What is bad is a problem, in the page's verdict, on the terminal, in JSON and in Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.analysis.numbers import UNKNOWN, percent, with_unit
from harness.analysis.summary import Summary

WORKS = "works"
"""The verdict of a start-up check that found nothing wrong."""
CENSORED_SHARE = 0.05
"""More requests than this that were cut off at the end are worth a warning."""

STAMP_ERROR_SHARE = 0.1
"""Of the median TTFT: arrival stamps that may be off by more make the times inexact."""
BOTTLENECK_SHARE = 0.1
"""Of the seconds, or of the requests: what more of them say of the rest is doubtful, even where they are left out."""


@dataclass(frozen=True, slots=True)
class Flag:
    key: str
    """Of its entry in the glossary; empty: none."""
    name: str
    verdict: Literal["good", "bad", "open"]
    """open: it cannot be told, or is no more than a note."""
    sentence: str


def flags(summary: Summary, problems: Sequence[str] = ()) -> Iterator[Flag]:
    """In the order of the page; `problems` are those of the run itself."""
    yield Flag("", "record", "bad" if problems else "good", " ".join(problems) or "Whole: nothing of it is lost.")
    yield _check(summary)
    yield _agreement(summary)
    yield _health(summary)
    yield _contamination(summary)
    yield _censored(summary)
    yield _steady(summary)
    yield _stamps(summary)
    yield _failed(summary)


def doubts(summary: Summary, problems: Sequence[str] = ()) -> list[Flag]:
    """Those that are bad: the problems of a target."""
    return [flag for flag in flags(summary, problems) if flag.verdict == "bad"]


def _check(summary: Summary) -> Flag:
    if summary.check is None:
        return Flag("check", "start-up check", "open", "It was not made.")
    verdict: Literal["good", "bad"] = "good" if summary.check.verdict == WORKS else "bad"
    return Flag("check", "start-up check", verdict, summary.check.sentence)


def _agreement(summary: Summary) -> Flag:
    agreed = summary.agreement
    sentence = agreed.sentence()
    text = f"{sentence[:1].upper()}{sentence[1:]}."
    if agreed.reason is not None or agreed.cached.difference is None or agreed.prompt.difference is None:
        return Flag("counters", "counters against requests", "open", text)
    good = agreed.cached.agrees and agreed.prompt.agrees
    return Flag("counters", "counters against requests", "good" if good else "bad", text)


def _health(summary: Summary) -> Flag:
    health = summary.health
    if warning := health.warning():
        much = len(health.marked) > BOTTLENECK_SHARE * health.seconds or (
            health.requests > BOTTLENECK_SHARE * health.measured
        )
        serious: Literal["bad", "open"] = "bad" if much or not health.left_out else "open"
        return Flag("bottleneck", "harness health", serious, f"{warning[:1].upper()}{warning[1:]}.")
    sentence = health.sentence().removeprefix(f"{UNKNOWN} ").strip("()")
    return Flag(
        "bottleneck", "harness health", "good" if health.seconds else "open", f"{sentence[:1].upper()}{sentence[1:]}."
    )


def _contamination(summary: Summary) -> Flag:
    found = summary.contamination
    sentences = found.problems or found.notes
    text = " ".join(f"{one[:1].upper()}{one[1:]}." for one in sentences)
    if found.problems:
        return Flag("contamination", "contamination", "bad", text)
    return Flag("contamination", "contamination", "open" if text else "good", text or "No sign of other traffic.")


def _censored(summary: Summary) -> Flag:
    groups = [group for group in summary.groups if group.warmth == "all"]
    cut, requests = sum(group.by_status.get("cancelled", 0) for group in groups), sum(one.requests for one in groups)
    if not cut:
        return Flag("censored", "cut off at the end", "good", "No request was cut off by the end of the run.")
    share = cut / requests
    text = f"{cut:,} of {requests:,} requests ({percent(share)}) were still under way when the run ended."
    doubtful = [] if summary.certainty is None else [one.sentence() for one in summary.certainty.censored]
    if sentences := [sentence for sentence in doubtful if sentence]:
        return Flag("censored", "cut off at the end", "bad", " ".join((text, *sentences)))
    if share > CENSORED_SHARE:
        return Flag("censored", "cut off at the end", "bad", f"{text} Percentiles leave them out and are too low.")
    return Flag("censored", "cut off at the end", "open", text)


def _steady(summary: Summary) -> Flag:
    if summary.certainty is None:
        return Flag("steady", "steady state", "open", "Not looked for in so many requests.")
    steady = summary.certainty.steady
    sentence = steady.sentence().removesuffix(".")
    return Flag(
        "steady",
        "steady state",
        "good" if steady.declared_is_enough else "open",
        f"{sentence[:1].upper()}{sentence[1:]}.",
    )


def _stamps(summary: Summary) -> Flag:
    error = summary.stamps.error_ms
    medians = [ttft.p50 for group in summary.groups if (ttft := group.times.ttft).p50 is not None]
    if error.p50 is None or error.p99 is None or not medians:
        return Flag("stamps", "arrival stamps", "open", "How exact they are is not known: there are no kernel stamps.")
    least = min(medians)
    text = (
        f"The time of a first token is off by at most {with_unit(error.p99)} in 99 of 100 requests, and by "
        f"{with_unit(error.p50)} in half of them; the smallest median TTFT is {with_unit(least)}."
    )
    if error.p50 > STAMP_ERROR_SHARE * least:
        return Flag("stamps", "arrival stamps", "bad", f"{text} All times are less exact than they look.")
    if error.p99 > STAMP_ERROR_SHARE * least:
        return Flag("stamps", "arrival stamps", "open", f"{text} High percentiles are less exact than they look.")
    return Flag("stamps", "arrival stamps", "good", text)


def _failed(summary: Summary) -> Flag:
    groups = [group for group in summary.groups if group.warmth == "all"]
    failed, requests = sum(group.failed for group in groups), sum(group.requests for group in groups)
    if not failed:
        return Flag("", "failures", "good", "No request failed.")
    return Flag("", "failures", "bad", f"{failed:,} of {requests:,} requests failed ({percent(failed / requests)}).")
