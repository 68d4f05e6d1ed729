"""Two runs that are there already: what each says of its cache, and whether it paid."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.checks.laboratory import opened
from harness.checks.prove import Asked, prove
from harness.checks.prove_evidence import Counted
from harness.checks.prove_runs import Place, Sent, are_runs, compare_runs, counted, ratio, requests, side
from harness.engines.target import Target
from harness.errors import InputError
from harness.record.reader import open_run
from tests.checks.toy_server import ToyServer
from tests.engines.scripted_server import scripted_servers


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[str]]:
    """Where they are, and their ids: prove at a server that caches, and at one that does not."""
    folder = str(tmp_path_factory.mktemp("runs"))
    ids = []
    with scripted_servers() as serve:
        for caches in (True, False):
            target = Target(url=serve(TimedToy(16, caches=caches).routes))
            with opened("prove", target, folder, {}) as laboratory:
                prove([laboratory], Asked(400, questions=2))
            ids.append(laboratory.run_id)
    return folder, ids


class TimedToy(ToyServer):
    """It takes 0.1 ms for a word that is not cached."""

    def _look_up(self, prompt: Sequence[str]) -> int:
        cached = super()._look_up(prompt)
        time.sleep(1e-4 * (len(prompt) - cached))
        return cached


def test_a_cache_that_pays_by_two_runs_of_prove(runs: tuple[str, list[str]]) -> None:
    folder, (on, off) = runs
    finding, _ = compare_runs([on, f"{folder}/{off}"], folder)
    assert (finding.verdict, finding.exit_code) == ("pays", 0)
    assert f"{on} (127.0.0.1:" in finding.sentence
    assert "15 of 15 requests that sent a prefix again hit it" in finding.sentence  # warm, repeat, and nine tenths
    assert "0 of 15 requests" in finding.sentence
    assert finding.numbers["warm"]["n"] == finding.numbers["cold"]["n"] == 5
    other, _ = compare_runs([off, on], folder)
    assert (other.verdict, other.exit_code) == ("no-difference", 1)


def test_what_a_request_shares_is_what_was_sent_before_it(runs: tuple[str, list[str]]) -> None:
    """Of each prefix: cold, warm, repeat, nine tenths, half, and the control; the template's head is one token."""
    folder, (on, _) = runs
    by_place = dict(requests(open_run(on, folder)))
    first = [by_place[0, turn] for turn in range(6)]
    assert [one.shared_tokens for one in first] == [1, 401, first[1].prompt_tokens, 361, 201, 1]
    assert [one.is_again for one in first] == [False, True, True, True, False, False]
    assert [one.is_new for one in first] == [True, False, False, False, False, True]


def sent(shared: int, cached: int | None, ttft_ms: float = 10.0) -> Sent:
    return Sent(1000, shared, cached, ttft_ms)


@pytest.mark.parametrize(
    ("cached", "counter", "state", "words"),
    [
        ([900, 900, 0], None, "hit", "2 of 3 requests that sent a prefix again hit it (1,800 tokens)"),
        ([900, 0, 0], 900, "some", "1 of 3"),
        ([0, 0, None], 2700, "none", "0 of 2"),
        ([None, None, None], 2600, "hit", "by the engine's counter 2,600 of 2,700 tokens"),
        ([None, None, 900], 600, "some", "by the engine's counter 600"),
        ([None, None, None], 30, "none", "by the engine's counter 30"),
        ([None, None, None], None, "unknown", "nobody counted hits"),
        ([], 100, "unknown", "no request sent a prefix again"),
    ],
)
def test_what_a_run_says_of_its_cache(
    cached: list[int | None], counter: int | None, state: Counted, words: str
) -> None:
    found = side([sent(0, 0), *(sent(900, one) for one in cached)], counter)
    assert found.state == state
    assert words in found.words


def test_requests_are_compared_in_their_places() -> None:
    """A session is one value; a prompt of another length, and one that only one run has, are none."""
    a: dict[Place, Sent] = {(0, 1): sent(900, 0, 20), (0, 2): sent(900, 0, 40), (1, 1): sent(900, 0, 30)}
    b: dict[Place, Sent] = {(0, 1): sent(900, 0, 10), (0, 2): sent(900, 0, 10), (1, 1): Sent(1100, 900, 0, 1.0)}
    found = ratio(a, {**b, (2, 1): sent(900, 0)}, again=True)
    assert found is not None
    assert (found.median, found.n) == (3.0, 1)
    assert ratio(a, b, again=False) is None


def test_runs_and_targets_are_not_mixed(runs: tuple[str, list[str]]) -> None:
    folder, (on, off) = runs
    assert are_runs([on, f"{folder}/{off}"], folder)
    assert not are_runs(["http://127.0.0.1:1", "my-server"], folder)
    with pytest.raises(InputError, match=r"is a run, and http://127.0.0.1:1 is none: name two runs, or two targets"):
        are_runs([on, "http://127.0.0.1:1"], folder)


def test_runs_that_cannot_be_compared(runs: tuple[str, list[str]], tmp_path: Path) -> None:
    folder, (on, _) = runs
    changed: list[tuple[dict[str, Any], str]] = [
        ({"scenario_name": "agent-loop"}, "name two runs that sent the same"),
        ({"state": "running"}, "has not ended"),
    ]
    for change, words in changed:
        manifest = open_run(on, folder).manifest.model_copy(update={**change, "run_id": "changed"})
        copy = tmp_path / words.split()[0]
        copy.mkdir()
        (copy / "run.json").write_text(manifest.model_copy(update={"parts": type(manifest.parts)()}).model_dump_json())
        with pytest.raises(InputError, match=words):
            compare_runs([on, str(copy)], folder)
    with pytest.raises(InputError, match="no run 'nowhere'"):
        compare_runs([on, "nowhere"], folder)


def test_a_run_without_the_counter_has_no_count(runs: tuple[str, list[str]]) -> None:
    folder, (on, _) = runs
    assert counted(open_run(on, folder)) is None
