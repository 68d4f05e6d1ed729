"""Parts that travel to the master as messages: each is written once, whatever the link does to the messages."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from harness.record.storage import Folder
from harness.swarm import outbox as module
from harness.swarm.outbox import PIECES_UNDER_WAY, SEND_AGAIN_S, Inbox, Outbox


class Link:
    """Carries pieces and acknowledgements a tick later, and loses, doubles or holds back some of them."""

    def __init__(self, folder: Folder, seed: int = 0, loses: float = 0.0, doubles: float = 0.0, holds: float = 0.0):
        self.outbox = Outbox("r1", self._post)
        self.inbox = Inbox(folder)
        self.is_cut = False
        self.sent: list[tuple[str, int]] = []
        self._random = random.Random(seed)
        self._loses, self._doubles, self._holds = loses, doubles, holds
        self._under_way: list[dict[str, Any]] = []
        self._now_s = 100.0

    def _post(self, message: dict[str, Any]) -> None:
        self.sent.append((message["name"], message["number"]))
        self._under_way += [message] * (2 if self._random.random() < self._doubles else 1)

    def _arrives(self) -> bool:
        return not self.is_cut and self._random.random() >= self._loses

    def tick(self, seconds: float = 0.25) -> None:
        self._now_s += seconds
        self.outbox.send(self._now_s)
        arriving = [message for message in self._under_way if self._random.random() >= self._holds]
        self._under_way = [message for message in self._under_way if message not in arriving]
        self._random.shuffle(arriving)
        for message in arriving:
            if self._arrives() and self.inbox.take(message) and self._arrives():
                self.outbox.acknowledge(message["name"], message["number"])

    def until_empty(self, ticks: int = 2_000) -> None:
        while self.outbox.parts_waiting:
            self.tick()
            ticks -= 1
            assert ticks, "the parts do not get through"


class CountingFolder:
    """A folder that knows how often each file was written, and may be full."""

    def __init__(self, path: Path) -> None:
        self.folder = Folder.at(path)
        self.written: list[str] = []
        self.is_full = False

    def write(self, name: str, data: bytes) -> None:
        if self.is_full:
            raise OSError(28, "No space left on device")
        self.written.append(name)
        self.folder.write(name, data)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE_BYTES", 100)


def contents(sizes: list[int]) -> dict[str, bytes]:
    draw = random.Random(1)
    return {f"requests/part-0-0000-{i:05d}.parquet": draw.randbytes(size) for i, size in enumerate(sizes)}


PARTS = contents([1, 99, 100, 101, 5_000, 250])


@pytest.mark.parametrize("seed", range(40))
def test_each_part_is_written_once_though_messages_are_lost_doubled_and_held_back(seed: int, tmp_path: Path) -> None:
    folder = CountingFolder(tmp_path)
    link = Link(folder, seed, loses=0.3, doubles=0.3, holds=0.4)  # type: ignore[arg-type]
    for name, data in PARTS.items():
        link.outbox.write(name, data)
        link.tick()
    link.until_empty()
    assert sorted(folder.written) == sorted(PARTS)
    assert {name: (tmp_path / name).read_bytes() for name in PARTS} == PARTS


def test_a_good_link_is_used_once_for_each_piece(tmp_path: Path) -> None:
    link = Link(Folder.at(tmp_path))
    for name, data in PARTS.items():
        link.outbox.write(name, data)
    link.until_empty()
    assert len(link.sent) == len(set(link.sent)) == sum(-(-len(data) // 100) for data in PARTS.values())


def test_few_pieces_are_under_way_and_a_cut_link_is_not_flooded(tmp_path: Path) -> None:
    link = Link(Folder.at(tmp_path))
    link.is_cut = True
    link.outbox.write("a", bytes(10_000))
    ticks = 40
    for _ in range(ticks):
        link.tick()
    assert len(link.sent) <= PIECES_UNDER_WAY * (1 + ticks * 0.25 / SEND_AGAIN_S)
    link.is_cut = False
    link.until_empty()
    assert (tmp_path / "a").read_bytes() == bytes(10_000)


def test_a_part_that_could_not_be_written_comes_again(tmp_path: Path) -> None:
    folder = CountingFolder(tmp_path)
    folder.is_full = True
    link = Link(folder)  # type: ignore[arg-type]
    link.outbox.write("a", bytes(300))
    for _ in range(4):
        link.tick()
    assert link.outbox.parts_waiting == 1
    assert "No space left" in link.inbox.unwritten["a"]
    folder.is_full = False
    link.until_empty()
    assert (folder.written, link.inbox.unwritten) == (["a"], {})


def test_no_part_is_taken_in_beyond_the_bound_until_some_are_delivered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES_WAITING", 1_000)
    link = Link(Folder.at(tmp_path))
    link.outbox.write("a", bytes(1_001))
    assert link.outbox.is_full
    with pytest.raises(OSError, match="wait for the master"):
        link.outbox.write("b", bytes(1))
    link.until_empty()
    link.outbox.write("b", bytes(1))
    link.until_empty()
    assert (tmp_path / "b").read_bytes() == bytes(1)


def test_what_is_given_up_can_be_kept_elsewhere(tmp_path: Path) -> None:
    link = Link(Folder.at(tmp_path))
    link.is_cut = True
    link.outbox.write("a", b"rows")
    link.tick()
    assert [(name, data.to_pybytes()) for name, data in link.outbox.take_back()] == [("a", b"rows")]
    assert link.outbox.parts_waiting == 0
