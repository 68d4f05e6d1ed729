"""What persist says of a slot."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.checks.laboratory import Finding
from harness.checks.persist_evidence import Asked, Evidence, Role
from harness.checks.persist_finding import INSTEAD, Story, finding, not_offered, not_taken, off
from harness.engines.detect import ADAPTERS
from harness.engines.llama_cpp import LlamaCppEngine
from harness.engines.llama_cpp_slots import Moved, NotRestored

ADVICE = LlamaCppEngine.advice


def told(
    counts: dict[Role, int | None], story: Story | None = None, folder: Path | None = None, warm_ms: float = 10.0
) -> Finding:
    times: dict[Role, float] = {"cold": 90.0, "warm": warm_ms, "erased": 92.5, "restored": 11.0}
    asked = tuple(Asked(role, count, times[role]) for role, count in counts.items())
    return finding(Evidence(asked, 1024, 10), story or done(), folder, ADVICE)


def done(**more: bool) -> Story:
    return Story("a.bin", 1, Moved(1024, 4_200_000, 3.5), Moved(1024, 4_200_000, 1.25), **more)


COUNTS: dict[Role, int | None] = {"cold": 0, "warm": 1023, "erased": 0, "restored": 1023}


def test_a_slot_that_comes_back() -> None:
    works = told(COUNTS)
    assert (works.verdict, works.exit_code) == ("works", 0)
    assert works.sentence == (
        "A saved slot comes back: of a prompt of 1,024 tokens the first request hit 0 tokens; a warm one hit 1,023 "
        "tokens; one in an emptied slot hit 0 tokens; one in the restored slot hit 1,023 tokens. By the clock the "
        "first token came after 92.5 ms in an emptied slot, 10.0 ms in a warm one and 11.0 ms in a restored one, after "
        "1.2 ms for the restoring. The file a.bin of 4,200,000 bytes stays in the server's folder, as llama-server has "
        "no call "
        "to delete one: remove it there. Such a file is the conversation."
    )
    assert works.numbers["restored_cached_tokens"] == 1023
    assert (works.numbers["saved_bytes"], works.numbers["restored_in_ms"]) == (4_200_000, 1.25)


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({**COUNTS, "restored": 0}, "A restored slot is not used: "),
        ({**COUNTS, "restored": 500}, "Only a part of a restored slot is used: "),
        ({**COUNTS, "warm": 0, "restored": 0}, "start llama-server without --no-cache-prompt"),
        ({**COUNTS, "erased": 1023}, "so a hit after the restore would prove nothing"),
    ],
)
def test_what_is_not_as_it_should_is_said(counts: dict[Role, int | None], words: str) -> None:
    assert words in told(counts).sentence


def test_where_nobody_counts_the_clock_speaks_or_nothing_is_told() -> None:
    nobody: dict[Role, int | None] = dict.fromkeys(COUNTS)
    assert "By the clock alone, as nobody counts cached tokens, a restored slot is used." in told(nobody).sentence
    unseen = told(nobody, warm_ms=88.0)
    assert unseen.exit_code == 2
    assert "timings.cache_n" in unseen.sentence


@pytest.mark.parametrize(
    ("same", "words"), [(True, "it was not started again"), (False, "Another process of the server restored it")]
)
def test_a_later_check_says_whether_the_process_is_another(same: bool, words: str) -> None:
    assert words in told(COUNTS, done(again=True, same_process=same)).sentence


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        (0o600, "Nobody but its owner may read it (mode 0600)."),
        (0o644, "Others on that machine have rights to it (mode 0644): start llama-server under umask 077"),
    ],
)
def test_who_may_read_the_file(mode: int, words: str, tmp_path: Path) -> None:
    (tmp_path / "a.bin").touch(mode)
    (tmp_path / "a.bin").chmod(mode)
    assert words in told(COUNTS, folder=tmp_path).sentence


def test_a_folder_that_is_not_the_servers_is_asked_about(tmp_path: Path) -> None:
    assert "is that --slot-save-path?" in told(COUNTS, folder=tmp_path).sentence


def test_a_file_that_the_server_refuses_is_not_restored() -> None:
    refused = not_taken(NotRestored("POST http://x answered 400 (invalid slot save file)"), done(), None)
    assert (refused.verdict, refused.exit_code) == ("not-restored", 1)
    assert "400 (invalid slot save file). llama-server says so of a file that is not there" in refused.sentence


def test_without_a_folder_the_flag_is_named() -> None:
    assert (off().verdict, off().exit_code) == ("off", 1)
    assert "--slot-save-path DIR" in off().sentence


def test_of_every_other_engine_it_is_said_what_it_has_instead() -> None:
    assert set(INSTEAD) == {adapter.name for adapter in ADAPTERS} - {"llama-cpp"}
    for engine in INSTEAD:
        assert (not_offered(engine).verdict, not_offered(engine).exit_code) == ("not-offered", 2)
