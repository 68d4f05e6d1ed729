"""Every number of the page is one click from its definition."""

from __future__ import annotations

import pytest

from harness.report.glossary import ENTRIES, key_of


@pytest.mark.parametrize(
    ("names", "key"),
    [
        (("n", "failed", "requests not ok"), "n"),
        (("prompt\ntokens", "prompt tokens"), "prompt-tokens"),
        (("with\nboth", "of\nok", "cached\nnone", "cached some", "cached null"), "coverage"),
        (("95 % intervals",), "interval"),
        (("planned prompt lengths",), "planned"),
        (("preemptions",), "preemptions"),
        (("tokens from an external cache",), "external"),
        (("KV dtype", "context", "slots", "prefix caching"), "identity"),
        (("cold start",), "cold-start"),
        (("level",), "level"),
        (("seconds",), "window"),
        (("steady", "steady state"), "steady"),
        (("pressure", "x KV\ncapacity"), "pressure"),
    ],
)
def test_the_name_of_a_number_leads_to_its_entry(names: tuple[str, ...], key: str) -> None:
    assert [key_of(name) for name in names] == [key] * len(names)


def test_no_name_has_two_entries_and_no_entry_two_anchors() -> None:
    names = [name for entry in ENTRIES for name in entry.found_as]
    keys = [entry.key for entry in ENTRIES]
    assert (len(names), len(keys)) == (len(set(names)), len(set(keys)))
