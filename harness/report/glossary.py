"""What the words and numbers of the report mean: one entry each, to which they link."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    key: str
    """Its anchor is `def-<key>`."""
    name: str
    meaning: str
    formula: str = ""
    found_as: tuple[str, ...] = ()
    """Headings of columns and names of lines that stand for it, in small letters."""
    said_as: tuple[str, ...] = ()
    """Words of sentences and titles of plots that stand for it, in small letters."""


ENTRIES = (
    Entry("hit-rate", "token hit rate",
          "Share of the prompt tokens that the engine reports as served from its cache, over the requests that report "
          "both counts. A ratio of sums, never a mean of ratios; what is not reported is not 0.",
          "sum(cached_tokens) / sum(prompt_tokens)",
          ("hit rate", "hit rate, per request", "hit rate measured", "measured", "= measured", "cached tokens",
           "from the cache"),
          said_as=("hit rate", "token hit rate", "came from it", "came from the cache")),
    Entry("counters", "hit rate by counters",
          "The same from the engine's own metrics: what its counters grew by from the scrape after the warm-up to the "
          "last one, or in a stretch of time. Between two scrapes a counter is drawn as growing evenly.",
          "growth(cached tokens) / growth(prompt tokens)",
          ("hit rate, counters", "counters and requests", "usage cached", "counters cached", "by counters"),
          said_as=("server's counters", "counters against requests")),
    Entry("shareable", "shareable",
          "Prompt tokens with which some request sent before began, too: what a cache without end would find that knew "
          "each request as soon as it was sent.", "", ("shareable",),
          said_as=("what could be reused", "could have", "sharing achieved", "biggest loss")),
    Entry("granularity", "granularity",
          "Lost of what is shareable to whole blocks or pages, and to the last token, which is always computed.", "",
          ("- granularity", "granularity"),
          said_as=("whole blocks",)),
    Entry("in-flight", "in flight", "Lost as it was still being computed by a request under way.", "",
          ("- in flight", "in flight"),
          said_as=("still being computed",)),
    Entry("capacity", "capacity",
          "Lost as it had been evicted at the engine's real KV capacity; all that is left where prefix caching is off.",
          "",
          ("- capacity", "capacity", "lost to capacity", "evicted"), said_as=("evicted", "capacity: evicted")),
    Entry("kv-capacity", "KV capacity",
          "Tokens that the engine's KV cache has room for, running requests included, as the engine itself says; where "
          "it does not, as the scenario does. Of all replicas together.", "", ("kv capacity",),
          said_as=("kv capacity",)),
    Entry("routing", "routing", "Lost as another replica or slot held it than the one that answered.", "",
          ("- routing", "routing"),
          said_as=("another replica or slot",)),
    Entry("expected", "expected",
          "What the engine should have served: the requests are played again through a model of its cache, by its own "
          "rules and with its own room.", "shareable - granularity - in flight - capacity - routing",
          ("expected", "= expected", "expected cached"),
          said_as=("were expected", "as expected", "fewer than expected", "more than expected")),
    Entry("unexplained", "unexplained",
          "What the model expects and the engine does not report; below 0: it reports more. Template drift, replies "
          "that tokenise differently, foreign traffic, or a bug.", "expected - measured",
          ("- unexplained", "unexplained", "off"),
          said_as=("were not reported",)),
    Entry("working-set", "working set",
          "Distinct tokens that some prompt began with and a later one begins with again, the most at any moment. By "
          "hindsight, so it falls to nothing towards the end of a run.", "",
          ("working set", "touched"),
          said_as=("working set",)),
    Entry("pressure", "pressure", "How much the load wants kept, against how much there is room for.",
          "working set / KV capacity", ("pressure", "x kv capacity"),
          said_as=("pressure",)),
    Entry("ttft", "TTFT",
          "Time to first token: from just before the first byte of the request is written to the arrival of the first "
          "output. Time in the server's queue is part of it. The column due: from when the schedule wanted it sent.",
          "t_first - t_send", ("ttft", "due", "ttft p50", "ttft p90", "ttft p99", "due p50", "ttft ms"),
          said_as=("ttft",)),
    Entry("tpot", "TPOT", "Time per output token after the first ones.",
          "(t_last - t_first) / (output_tokens - first_tokens)", ("tpot", "tpot p50"),
          said_as=("tpot",)),
    Entry("e2e", "E2E", "The whole request.", "t_end - t_send", ("e2e", "e2e p50", "e2e p90")),
    Entry("percentile", "p50, p90, p99",
          "Exact percentiles of the successful requests whose times count, linear between ranks. \u201c+failed\u201d "
          "counts each failure as infinitely slow.", "", ("p50", "p90", "p99", "longest")),
    Entry("n", "n, failed",
          "n: the successful requests whose times count, of which the percentiles of the row are. Those that failed "
          "stand beside them. What the end of the run cut off, and what was under way while the harness was the "
          "bottleneck, is in neither.", "", ("n", "failed", "requests not ok")),
    Entry("interval", "95 % intervals",
          "Where the numbers of such runs lie in 19 of 20 cases: sessions are drawn again with replacement, as "
          "requests of one session depend on each other. Shares have Wilson's interval.", "", ("95 % intervals",)),
    Entry("prompt-tokens", "prompt tokens",
          "Tokens of the prompt with its chat template, as the engine counts them; a table of hits sums them over the "
          "requests that report cached tokens as well.", "sum(prompt_tokens)", ("prompt tokens", "usage prompt")),
    Entry("coverage", "with both, of ok, none, some, null",
          "With both: requests that report cached and prompt tokens; of ok: their share of the successful ones. None, "
          "some, null: requests that report 0 cached tokens, more than 0, or nothing, which is not 0.", "",
          ("with both", "of ok", "cached none", "cached some", "cached null", "some", "null")),
    Entry("planned", "planned prompt lengths",
          "Whether prompts are as long as they were planned to be, by the engine's own count.",
          "prompt_tokens - planned_prompt_tokens", ("planned prompt lengths",)),
    Entry("level", "level", "A part of the prompts, from the one that most share to the user's own words. A hit is a "
          "prefix, so it covers whole levels from the first on.", "", ("level",)),
    Entry("window", "windows of time", "The time from the first measured request to the last, in tenths; a request "
          "belongs to the one in which it was sent.", "", ("seconds", "requests")),
    Entry("identity", "who answered",
          "What the engine tells of itself. Context: the most tokens of prompt and answer together. Slots: requests "
          "that it computes at the same time. Prefix caching: whether it is on. KV dtype: the type of its keys and "
          "values; auto is that of the model. Granularity: a hit ends at a multiple of it.", "",
          ("context", "slots", "prefix caching", "kv dtype")),
    Entry("cold-start", "cold start", "How it was made sure that nothing of this run was in the cache when it began: a "
          "salt or a text of its own before each prompt, an emptied cache, or not at all.", "", ("cold start",)),
    Entry("preemptions", "preemptions, evicted tokens",
          "Requests whose KV the engine gave up to make room for others, and computed again; tokens that it dropped "
          "from its cache.", "", ("preemptions", "evicted tokens")),
    Entry("external", "tokens from an external cache",
          "Prompt tokens that a tier outside of the engine's own memory supplied, such as offloaded KV; they are not "
          "in the hit rate by counters.", "", ("tokens from an external cache",)),
    Entry("hit", "hit, miss",
          "A request is a hit if at least half of its prompt came from the cache, else a miss. Requests that do not "
          "report it are neither.", "2 * cached_tokens >= prompt_tokens", ("hit", "miss", "requests that"),
          said_as=("a miss",)),
    Entry("uncached", "uncached tokens", "What had to be computed of a prompt.", "prompt_tokens - cached_tokens",
          ("uncached tokens",),
          said_as=("uncached tokens",)),
    Entry("prefill-cost", "prefill cost",
          "Slope of TTFT over uncached tokens: the median of the slopes of all pairs of requests (Theil-Sen), which "
          "outliers do not move. Its interval: 95 % of the slopes when sessions are drawn again with replacement. It "
          "is the cost under this load, its queue included.",
          "median((TTFT_i - TTFT_j) / (uncached_i - uncached_j))",
          ("prefill cost", "95 % interval", "ttft at 0 tokens"),
          said_as=("a thousand uncached tokens", "prefill cost")),
    Entry("saved", "saved prefill seconds",
          "An estimate: what prefill of the cached tokens would have cost at that slope. Server time, summed over "
          "requests.", "prefill cost * sum(cached_tokens)", ("saved prefill",),
          said_as=("hits saved about",)),
    Entry("reuse-distance", "reuse distance",
          "Distinct tokens sent since a prompt token with all before it was sent last, its own block included: the "
          "smallest LRU cache that would still hold it.", "", ("distinct tokens since",),
          said_as=("reuse distance", "reuse distances")),
    Entry("lru-curve", "LRU hit rate at every capacity",
          "What a cache that evicts the least recently used block first would serve of all prompt tokens, each request "
          "finished before the next (Mattson, 1970). The dot is what was measured at the engine's capacity.", "", (),
          said_as=("lru hit rate at every capacity",)),
    Entry("turn", "turn", "Number of the request within its session, from 0. Turn 0 is cold, later ones are warm.", "",
          ("turn", "turns"),
          said_as=("turn",)),
    Entry("running", "running, waiting",
          "Requests that the server computes, and that wait in its queue, by its own gauges.", "",
          ("running requests, peak", "running requests, mean", "waiting requests, peak", "waiting requests, mean")),
    Entry("kv-use", "KV in use", "Share of the KV capacity that holds running requests (or cached ones, as the engine "
          "counts), of the fullest replica.", "", ("kv capacity in use, peak", "kv capacity in use, mean"),
          said_as=("kv capacity in use",)),
    Entry("token-rates", "prefill and decode rate",
          "Prompt tokens that the server computed, and tokens that it generated, a second, by its counters.", "",
          ("generated tokens",)),
    Entry("bottleneck", "harness bottleneck",
          "A second in which a worker of the harness stalled, lagged or used a core up. Requests due or under way in "
          "such a second of their worker are left out of all times, and of no count of tokens.",
          "loop lag >= 100 ms at most, or >= 10 ms in the median, or CPU >= 0.9 of a core",
          ("harness health", "bottleneck"),
          said_as=("the bottleneck", "busiest worker")),
    Entry("late", "late", "How much too late a request was sent by the harness's own fault.",
          "t_send - t_due - time that the turn before took", ("harness late by",),
          said_as=("how late the harness was",)),
    Entry("stamps", "arrival stamps", "Whether the kernel or the process stamped what arrived, and how far a first "
          "token's time may be off at most.", "", ("arrival stamps",)),
    Entry("contamination", "contamination",
          "Hits on texts that this run had not sent before, or counters and queues that hold more than its requests "
          "explain: another client, or a cache that was not cold.", "", ("contamination",),
          said_as=("other traffic",)),
    Entry("censored", "cut off at the end",
          "Requests that were still under way when the run ended: their times are not known, only that they were "
          "longer. Percentiles of few or slow requests are too low where there are many.", "status = cancelled",
          ("cut off at the end",),
          said_as=("cut off", "still under way when the run ended")),
    Entry("steady", "steady state",
          "From when on hit rate, TTFT and requests in flight change no more than by chance.", "MSER-5 (White 1997)",
          ("steady state", "steady"),
          said_as=("steady",)),
    Entry("answered", "answered/s, goodput/s, requests/s, tokens/s",
          "Successful requests, or their tokens, over the length of the measured phase; goodput: those that are beyond "
          "no limit of the objective.", "ok / seconds",
          ("answered/s", "goodput/s", "requests/s", "prompt tokens/s", "output tokens/s"),
          said_as=("requests answered",)),
    Entry("check", "start-up check", "A few prompts sent before the load, whose hits are known beforehand.", "",
          ("probe", "start-up check")),
)  # fmt: skip

_FOUND_AS = {name: entry.key for entry in ENTRIES for name in entry.found_as}


_SAID_AS = {words: entry.key for entry in ENTRIES for words in entry.said_as}
_SAID = re.compile(rf"\b(?:{'|'.join(sorted(map(re.escape, _SAID_AS), key=len, reverse=True))})\b", re.IGNORECASE)


def phrases(sentence: str) -> Iterator[tuple[int, int, str]]:
    """(first character, the one after the last, entry) of the words that stand for an entry, each entry once."""
    seen = set()
    for found in _SAID.finditer(sentence):
        key = _SAID_AS[found.group().lower()]
        if key not in seen:
            seen.add(key)
            yield *found.span(), key


def key_of(name: str) -> str | None:
    """The entry that the heading of a column or the name of a line stands for."""
    return _FOUND_AS.get(" ".join(name.replace("-\n", "").split()).lower())
