"""What a worker does with parts that the master has not taken at its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gevent
import pytest

from harness.swarm import delivery as module
from harness.swarm.delivery import Delivery

NAME = "requests/part-0-0001-00000.parquet"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The worker's current directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_stays_until_the_master_has_everything(folder: Path) -> None:
    sent: list[dict[str, Any]] = []
    delivery = Delivery("r1", sent.append)
    delivery.outbox.write(NAME, b"rows")
    finishing = gevent.spawn(delivery.finish)
    gevent.sleep(0.05)
    assert not finishing.ready()
    delivery.acknowledge(sent[0]["name"], sent[0]["number"])
    assert finishing.get(timeout=10) == ""
    delivery.close()
    assert not list(folder.iterdir())


@pytest.mark.parametrize("told", [True, False])
def test_what_the_master_never_took_is_kept_here(folder: Path, monkeypatch: pytest.MonkeyPatch, told: bool) -> None:
    monkeypatch.setattr(module, "GIVE_UP_S", 0.05)
    delivery = Delivery("r1", lambda _: None)
    delivery.outbox.write(NAME, b"rows")
    if told:  # that nobody listens any more
        delivery.abandon()
    sentence = delivery.finish()
    delivery.close()
    place = folder / "undelivered" / "r1"
    assert (place / NAME).read_bytes() == b"rows"
    assert f"kept in {place}" in sentence
    assert "kvswarm repair" in sentence


def test_where_it_cannot_be_kept_the_sentence_says_so(folder: Path) -> None:
    (folder / "undelivered").write_text("a file in the way of the folder")
    delivery = Delivery("r1", lambda _: None)
    delivery.outbox.write(NAME, b"rows")
    delivery.abandon()
    assert "could not be kept" in delivery.finish()
    delivery.close()
