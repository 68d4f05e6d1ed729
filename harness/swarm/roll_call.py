"""The master's part of the handshake: who of the connected workers takes part in a run, and who is refused."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gevent

from harness.swarm.clock_offset import ClockOffset, Exchange, clock_offset
from harness.swarm.handshake import (
    ANSWER,
    ASK,
    CLOCK,
    FILES,
    REFUSED,
    TIME,
    Credentials,
    files_fingerprint,
    files_refusal,
    own_credentials,
    refusal,
)
from harness.workload.scenario import Scenario

logger = logging.getLogger(__name__)

ANSWER_S = 10.0
"""How long a worker may take to say who it is: it may be connected already, and its locustfile not loaded yet."""
ASK_AGAIN_S = 1.0
FILES_S = 120.0
"""How long it may take to read the scenario's files: a long trace is gigabytes."""
ROUNDS = 10
"""Of clock questions; the quickest answer counts."""
ROUND_S = 0.5
SILENT = (
    f"it did not say within {ANSWER_S:.0f} s which kvswarm it has: it has an older one, or its locustfile does not "
    "call harness.swarm.install; install the master's kvswarm there"
)


@dataclass(frozen=True, slots=True)
class Roll:
    """What came of a call."""

    present: Mapping[str, Credentials]
    """Locust's client id -> who takes part, in the order of the call."""
    refused: Sequence[str]
    """A sentence for each other one."""


class RollCall:
    """Asks the workers of one master; the calls come one after the other."""

    def __init__(self, runner: Any) -> None:
        self._runner = runner
        self._number = 0
        self._answers: dict[str, Credentials] = {}
        self._files: dict[str, dict[str, Any]] = {}
        self._times: dict[str, Exchange] = {}
        runner.register_message(ANSWER, self._on_answer)
        runner.register_message(FILES, self._on_files)
        runner.register_message(TIME, self._on_time)

    def call(self, ids: Sequence[str], scenario: Scenario) -> Roll:
        """Ask these workers, and send away those that cannot take part in a run of `scenario`."""
        self._number += 1
        self._answers, self._files = {}, {}
        question = {"number": self._number, "scenario": scenario.to_json()}
        deadline = time.monotonic() + ANSWER_S
        while missing := [client_id for client_id in self._there(ids) if client_id not in self._answers]:
            for client_id in missing:
                self._runner.send_message(ASK, question, client_id)
            self._wait_for(missing, self._answers, min(ASK_AGAIN_S, deadline - time.monotonic()))
            if time.monotonic() >= deadline:
                break
        refused: dict[str, str] = {}
        there = self._there(ids)
        for client_id in there:
            answer = self._answers.get(client_id)
            reason = SILENT if answer is None else refusal(own_credentials(), answer)
            if reason is not None:
                refused[client_id] = reason
        alike = [client_id for client_id in there if client_id not in refused]
        files = files_fingerprint(scenario)
        self._wait_for(alike, self._files, FILES_S)
        for client_id in alike:
            reason = self._judge_files(client_id, scenario, files)
            if reason is not None:
                refused[client_id] = reason
        return Roll(
            {client_id: self._answers[client_id] for client_id in alike if client_id not in refused},
            [self._send_away(client_id, reason) for client_id, reason in refused.items()],
        )

    def _there(self, ids: Sequence[str]) -> list[str]:
        """Those that have not left meanwhile."""
        return [client_id for client_id in ids if client_id in self._runner.clients]

    def _judge_files(self, client_id: str, scenario: Scenario, files: str) -> str | None:
        found = self._files.get(client_id)
        if found is None:
            return f"it did not read the files of scenario {scenario.name} within {FILES_S:.0f} s"
        if "problem" in found:
            return str(found["problem"]).removesuffix(".")
        return files_refusal(scenario, files, found["files"])

    def _send_away(self, client_id: str, reason: str) -> str:
        """Its process ends; returns what the run says of it."""
        answer = self._answers.get(client_id)
        where = client_id if answer is None else f"{client_id} on {answer.host}"
        sentence = f"worker {where} was refused: {reason}"
        logger.error("kvswarm: %s", sentence)
        self._runner.send_message(REFUSED, {"reason": reason}, client_id)
        self._runner.send_message("quit", None, client_id)
        return sentence

    def clock_offsets(self, ids: Collection[str]) -> dict[str, ClockOffset]:
        """Their clocks minus ours, of those that answer."""
        exchanges: dict[str, list[Exchange]] = {client_id: [] for client_id in ids}
        asked = list(ids)
        for _ in range(ROUNDS):
            self._number += 1
            self._times = {}
            for client_id in asked:
                question = {"number": self._number, "sent_ns": time.time_ns()}
                self._runner.send_message(CLOCK, question, client_id)
            self._wait_for(asked, self._times, ROUND_S)
            for client_id, exchange in self._times.items():
                exchanges[client_id].append(exchange)
            asked = list(self._times)
        offsets = {client_id: clock_offset(found) for client_id, found in exchanges.items()}
        return {client_id: offset for client_id, offset in offsets.items() if offset is not None}

    def _wait_for(self, ids: Collection[str], answers: Mapping[str, object], seconds: float) -> None:
        """Until all of them have answered, or are gone."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if all(client_id in answers or client_id not in self._runner.clients for client_id in ids):
                return
            gevent.sleep(0.005)

    def _on_answer(self, msg: Any, **_: Any) -> None:
        if msg.data["number"] == self._number:
            self._answers[msg.node_id] = Credentials.from_message(msg.data)

    def _on_files(self, msg: Any, **_: Any) -> None:
        if msg.data["number"] == self._number:
            self._files[msg.node_id] = msg.data

    def _on_time(self, msg: Any, **_: Any) -> None:
        returned_ns = time.time_ns()
        if msg.data["number"] == self._number:
            seen_ns = msg.data["seen_ns"]
            self._times[msg.node_id] = Exchange(msg.data["sent_ns"], seen_ns, seen_ns, returned_ns)
