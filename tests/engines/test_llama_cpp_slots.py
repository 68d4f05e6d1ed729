"""llama-server's calls for slots, as recorded and as they may go wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.engines.control import Control
from harness.engines.llama_cpp_slots import Moved, NotOffered, NotRestored, SlotControl, SlotSeen
from harness.engines.target import Target
from harness.errors import TargetError
from tests.engines.scripted_server import Serve


def control(root: str) -> SlotControl:
    return SlotControl(Control(Target(url=root)))


def refusal(status: int, message: str = "no") -> tuple[int, Any]:
    return status, {"error": {"message": message}}


@pytest.mark.parametrize("build", ["xllamacpp", "llama-server"])
def test_recorded_answers(build: str, serve: Serve, fixtures: Path) -> None:
    folder = fixtures / build
    bodies = {action: (folder / f"slot_{action}.body.json").read_text() for action in ("save", "restore", "erase")}
    missing = (400, (folder / "error_slot_missing_file.body.json").read_text())
    routes: dict[str, Any] = {f"POST /slots/0?action={action}": body for action, body in bodies.items()}
    routes["POST /slots/1?action=restore"] = missing
    routes["POST /slots/0?action=none"] = (400, (folder / "error_slot_bad_action.body.json").read_text())
    routes["GET /slots"] = (folder / "slots_after.body.json").read_text()
    slots = control(serve(routes))
    assert slots.offered()
    assert slots.save(0, "a.bin").tokens == slots.restore(0, "a.bin").tokens == slots.erase(0) == 1538
    assert slots.save(0, "a.bin").bytes > 9_000_000
    with pytest.raises(NotRestored, match="invalid slot save file"):
        slots.restore(1, "missing.bin")
    [seen] = slots.seen() or []
    assert (seen.number, seen.busy) == (0, False)


def test_slots_that_were_never_used_hold_nothing(serve: Serve) -> None:
    shown = [{"id": 0, "is_processing": False}, {"id": 1, "is_processing": True, "n_prompt_tokens": 7}]
    assert control(serve({"GET /slots": shown})).seen() == [SlotSeen(0, False, 0), SlotSeen(1, True, 7)]


def test_without_its_switches_it_shows_or_saves_nothing(serve: Serve) -> None:
    slots = control(
        serve(
            {
                "GET /slots": refusal(501),
                "POST /slots/0?action=none": refusal(501),
                "POST /slots/0?action=erase": refusal(501),
                "GET /metrics": refusal(501),
            }
        )
    )
    assert slots.seen() is None
    assert not slots.offered()
    assert slots.started() is None
    with pytest.raises(NotOffered, match="--slot-save-path"):
        slots.erase(0)


@pytest.mark.parametrize("shown", [{}, "no", [{"id": 0}], [5], refusal(404)])
def test_slots_that_look_otherwise_are_an_error(shown: Any, serve: Serve) -> None:
    with pytest.raises(TargetError, match="is this llama-server"):
        control(serve({"GET /slots": shown})).seen()


@pytest.mark.parametrize("body", [{}, {"n_saved": 5, "n_written": 6}, {"n_saved": "5", "timings": {"save_ms": 1}}])
def test_answers_that_lack_a_number_are_an_error(body: Any, serve: Serve) -> None:
    with pytest.raises(TargetError, match="has no"):
        control(serve({"POST /slots/0?action=save": body})).save(0, "a")


def test_other_refusals_are_errors_with_the_servers_words(serve: Serve) -> None:
    actions = ("none", "erase", "save", "restore")
    slots = control(serve({f"POST /slots/0?action={action}": refusal(500, "disk full") for action in actions}))
    for call in (slots.offered, lambda: slots.erase(0), lambda: slots.save(0, "a"), lambda: slots.restore(0, "a")):
        with pytest.raises(TargetError, match=r"500 \(disk full\)"):
            call()


def test_times_may_be_whole_numbers(serve: Serve) -> None:
    body = {"n_saved": 5, "n_written": 6, "timings": {"save_ms": 1}}
    assert control(serve({"POST /slots/0?action=save": body})).save(0, "a") == Moved(5, 6, 1.0)
