"""Which slot persist takes, and what it refuses to erase."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from harness.checks import persist_slot
from harness.checks.persist_slot import take
from harness.engines.control import Control
from harness.engines.llama_cpp_slots import SlotControl
from harness.engines.target import Target
from harness.errors import InputError, TargetError
from tests.engines.scripted_server import scripted_servers

NEVER_USED: dict[str, Any] = {"is_processing": False}
BUSY: dict[str, Any] = {"is_processing": True, "n_prompt_tokens": 5}


def holding(tokens: int) -> dict[str, Any]:
    return {"is_processing": False, "n_prompt_tokens": tokens}


class Server:
    """Shows slots, and notes which were erased."""

    def __init__(self, slots: Sequence[dict[str, Any]] | None) -> None:
        self.slots = slots
        self.erased: list[str] = []

    @property
    def routes(self) -> dict[str, Any]:
        erasing = {f"POST /slots/{number}?action=erase": self._erase for number in range(3)}
        return {"GET /slots": self._shown, **erasing}

    def _shown(self, _: object) -> Any:
        if self.slots is None:
            return 501, {"error": {"message": "no slots here"}}
        return [{"id": number, **slot} for number, slot in enumerate(self.slots)]

    def _erase(self, request: dict[str, Any]) -> Any:
        self.erased.append(request["path"])
        return {"n_erased": 1}


@pytest.fixture
def control(server: Server) -> Any:
    with scripted_servers() as serve:
        yield SlotControl(Control(Target(url=serve(server.routes))))


@pytest.mark.parametrize(
    ("server", "erase_others", "number"),
    [
        (Server([holding(9), NEVER_USED, holding(0)]), False, 1),
        (Server([holding(9), BUSY, holding(0)]), False, 2),
        (Server([holding(9), NEVER_USED]), True, 1),
        (Server([BUSY, holding(9), holding(7)]), True, 2),
        (Server(None), True, 0),
    ],
)
def test_an_empty_slot_is_taken_first(control: SlotControl, erase_others: bool, number: int) -> None:
    assert take("http://s", control, erase_others).number == number


@pytest.mark.parametrize(
    ("server", "erase_others", "words"),
    [
        (
            Server([holding(1213), BUSY]),
            False,
            r"Every slot of http://s is busy or holds somebody's conversation \(slot 0: 1,213 tokens, slot 1: a "
            r"request under way\), and the check erases none: give --erase-others to let the check empty slot 0",
        ),
        (Server([BUSY, BUSY]), True, "try it when one is idle"),
        (Server(None), False, "does not show its slots"),
    ],
)
def test_nobodys_conversation_is_taken_unless_told(control: SlotControl, erase_others: bool, words: str) -> None:
    with pytest.raises(InputError, match=words):
        take("http://s", control, erase_others)


@pytest.mark.parametrize("server", [Server([NEVER_USED])])
def test_what_came_into_the_slot_meanwhile_is_not_erased(
    control: SlotControl, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(persist_slot, "PATIENCE_S", 0.0)
    slot = take("http://s", control, erase_others=False)
    for other in (holding(501), BUSY):
        server.slots = [other]
        with pytest.raises(TargetError, match="that this check did not put there"):
            slot.erase(500)
    assert server.erased == []
    server.slots = [holding(500)]
    slot.erase(500)
    server.slots = [holding(501)]
    take("http://s", control, erase_others=True).erase(500)
    assert len(server.erased) == 2
