"""What the page says in words, and that words lead to their definitions."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from harness.record.manifest import StartUpCheck
from harness.record.reader import RecordedRun
from harness.report.document import document, findings
from harness.report.glossary import ENTRIES, phrases
from harness.report.markup import linked
from harness.report.plot import Plot, layer, on_shared_axes, plot, quantity, seconds, upright
from harness.report.side import read
from tests.analysis.rows import target
from tests.report.conftest import METRICS, MakeRecord, sent

VLLM = {"engine": "vllm", "model": "m", "granularity_tokens": 16}


def verdict(run: RecordedRun) -> list[str]:
    (one,) = findings(read([run]))
    return list(one.verdict)


def of(make_record: MakeRecord, hits: int, cached: int = 992, **changes: Any) -> RecordedRun:
    """One session that computes 1,000 tokens, and `hits` more that find `cached` of them; 10 misses of their own."""
    texts = [1, *[1] * hits, *range(2, 12)]
    rows = [
        sent(number, 0, 1.5 * number, 1_000, cached if 0 < number <= hits else 0, 20.0, path=[text])
        for number, text in enumerate(texts)
    ]
    identity = VLLM | changes.pop("identity", {})
    return make_record(rows, targets=[target(identity=identity, metrics=METRICS, **changes)])


def test_a_cache_that_works(make_record: MakeRecord) -> None:
    works, bought, limits = verdict(of(make_record, hits=10, identity={"capacity_tokens": 50_000}))
    assert works == "The cache works: 47.2 % of 21,000 prompt tokens came from it, 99.2 % of what could be reused."
    assert bought.startswith("A miss waits no longer than a hit for its first token: median TTFT 20.0 ms (n = 11)")
    assert limits == "Nothing limits it but the prompts: 52.4 % of their tokens were new."


def test_a_cache_that_does_what_it_can_and_keeps_little(make_record: MakeRecord) -> None:
    """With room for 1,008 tokens each text of its own evicts the shared one."""
    texts = [1, 2, 1, 3, 1, 4, 1, 5]
    rows = [sent(number, 0, 1.5 * number, 1_000, 0, 20.0, path=[text]) for number, text in enumerate(texts)]
    rows[4]["cached_tokens"] = 16
    identity = VLLM | {"capacity_tokens": 1_024}
    works, _, limits = verdict(make_record(rows, targets=[target(identity=identity, metrics=METRICS)]))
    assert works.startswith("The cache works by its rules, but serves only 0.5 % of what could be reused: 0.2 % of")
    assert limits.startswith("The KV memory limits it: 37.2 % of the prompt tokens had been evicted before they were")


def test_few_hits_or_misses_are_not_compared(make_record: MakeRecord) -> None:
    _, bought, _ = verdict(of(make_record, hits=1))
    assert bought == "What it bought in TTFT cannot be seen by comparison: there are only 1 hit and 11 misses."


def test_caching_that_is_off_is_said_as_it_is(make_record: MakeRecord) -> None:
    check = StartUpCheck(verdict="caching-off", sentence="Prefix caching is off.", granularity_tokens=None, probes=())
    run = of(make_record, hits=5, cached=0, check=check)
    assert verdict(run)[2] == "Prefix caching is off."
    assert '<p class="doubt bad"><i>!</i><span>Prefix caching is off.</span></p>' in document(read([run]))


def test_words_that_have_a_definition_lead_to_it_once() -> None:
    assert linked("TTFT & TTFT") == '<a class=term href="#def-ttft">TTFT</a> &amp; TTFT'
    assert linked("the server's counters") == ('the <a class=term href="#def-counters">server&#x27;s counters</a>')
    assert list(phrases("nothing of it")) == []
    said = [words for entry in ENTRIES for words in entry.said_as]
    assert len(said) == len(set(said))
    assert all(words == words.lower() for words in said)


def test_every_column_of_numbers_has_a_definition(make_record: MakeRecord) -> None:
    """But those that count or name what stands beside them."""
    page = document(read([of(make_record, hits=5), of(make_record, hits=6)]))
    named = re.findall(r"<th class=right>(.*?)</th>", page)
    plain = {text for text in named if "href" not in text}
    assert {text for text in plain if not re.fullmatch(r"run( \d = .*)?|<br>requests|seconds", text)} == set()


def test_measured_and_expected_over_time_are_of_the_same_stretches(make_record: MakeRecord) -> None:
    page = document(read([of(make_record, hits=5)]))
    specs = json.loads(page.split('<script type="application/json" id="plots">')[1].split("</script>")[0])
    rates = specs["plots"]["hit-rate"]
    rows = [row for rows in rates["datasets"].values() for row in rows if "middle" in row]
    at = {
        which: {(row["at"], row["middle"]) for row in rows if row["which"] == which and row["at"] != row["middle"]}
        for which in ("measured", "expected")
    }
    assert at["measured"] == at["expected"]
    assert len(at["measured"]) == 10
    assert "measured, each second" in page


@pytest.mark.parametrize("scale", [None, {"type": "log", "domain": [1, 5]}])
def test_plots_side_by_side_end_at_the_same_values(scale: Any) -> None:
    def one(value: float, end_s: float) -> Plot:
        rows = [{"at": 0.0, "value": 1.0}, {"at": 1.0, "value": value}]
        up = quantity("value", scale=scale | {"domain": [1, value]}) if scale else upright("value")
        return plot("p", "same", "ms", [layer("line", rows, x=seconds("at", end_s), y=up)])

    first, second = (column[0] for column in on_shared_axes([[one(5, 10)], [one(8, 4)]]))
    for each in (first, second):
        assert each.spec is not None
        encoding = each.spec["layer"][0]["encoding"]
        assert encoding["x"]["scale"]["domain"] == [0, 10]
        assert encoding["y"]["scale"]["domain"] == ([1, 8] if scale else [0, 8])


def test_what_answered_alike_stands_there_once(make_record: MakeRecord) -> None:
    def answered(*capacities: int) -> str:
        runs = [of(make_record, hits=1, identity={"capacity_tokens": tokens}) for tokens in capacities]
        return document(read(runs)).split('<section id="identity">')[1].split("</section>")[0]

    assert answered(1_024, 1_024).count("1,024 tokens") == 1
    assert "The same in both. " in answered(1_024, 1_024)
    different = answered(1_024, 2_048, 1_024)
    assert "<th>runs 1, 3</th><th>run 2</th>" in different
    assert re.findall(r"<tr class=differs><td>.*?</td><td>1,024 tokens</td><td>2,048 tokens</td></tr>", different)
    assert different.count("class=differs") == 1
