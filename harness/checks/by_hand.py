"""The check of a target by itself, without a run: `kvswarm target check`."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from harness.checks.prompts import SCENARIO
from harness.checks.sender import Sent
from harness.checks.start_up import check_start_up
from harness.client.timed import TimedClient
from harness.collector import Row, open_collector
from harness.engines.base import Identity
from harness.engines.detect import connect, identify
from harness.engines.target import Target
from harness.record.manifest import StartUpCheck
from harness.workload.learning import learn
from harness.workload.lexicon import Lexicon

NOT_AS_IT_SHOULD, UNCLEAR = 4, 5
"""Exit codes: the cache, or what is told of it, is not as it should be; it cannot be told. Lower ones are errors."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What was learnt of a target."""

    target: Target
    identity: Identity
    lexicon: Lexicon
    check: StartUpCheck

    def to_json(self) -> dict[str, Any]:
        """Plain values; nothing of the target's headers or keys."""
        return {
            "target": self.target.name,
            "url": self.target.url,
            "identity": asdict(self.identity),
            "words": len(self.lexicon.words),
            "exact": self.lexicon.exact,
            "notes": list(self.lexicon.notes),
            "check": self.check.model_dump(mode="json"),
        }


def check_target(target: Target) -> Checked:
    """Ask the target who it is, learn to send it prompts of known length, and check its cache.

    Raises TargetError if it cannot be reached or understood, or if a request fails.
    """
    engine = connect(target)
    identity = identify(engine)
    lexicon = learn(engine.count_text, engine.count_chat, engine.chat_tokens, SCENARIO)
    client = TimedClient(target, engine.read_event)
    label = f"check-{secrets.token_hex(6)}"
    try:
        check = check_start_up(client, engine, identity, lexicon, label, open_collector(target, _no_rows), _no_row)
    finally:
        client.close()
    return Checked(target, identity, lexicon, check)


def exit_code(checked: Iterable[Checked]) -> int:
    """0 if every cache works as it should, else NOT_AS_IT_SHOULD if one surely does not, else UNCLEAR."""
    verdicts = {one.check.verdict for one in checked}
    if verdicts - {"works", "unclear"}:
        return NOT_AS_IT_SHOULD
    return UNCLEAR if "unclear" in verdicts else 0


def _no_rows(_: list[Row]) -> None:
    """Nothing is recorded: there is no run."""


def _no_row(_: Sent) -> None:
    """As above."""
