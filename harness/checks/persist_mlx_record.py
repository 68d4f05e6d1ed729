"""The run directory of a check of mlx-lm's commands: a row for each answer, as of any run."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from harness import __version__
from harness.checks.laboratory import ALONE
from harness.checks.persist_mlx_engine import OUTPUT_TOKENS, Generated
from harness.client.reply import Reply
from harness.client.row import Asked, Labels, request_row
from harness.record.manifest import Manifest, Phase, TargetRecord, clock_pair, versions
from harness.record.reader import RecordedRun, open_run
from harness.record.run_directory import RunDirectory, create
from harness.record.schema import REQUESTS
from harness.record.writer import PartWriter
from harness.workload.session import Segment


class MlxRecording:
    """A context: run.json says "running" inside of it, and afterwards how it ended."""

    def __init__(
        self, model: Path, identity: Mapping[str, str | None], version: str, results: str, options: Mapping[str, Any]
    ) -> None:
        """Makes the directory below `results`. Raises InputError if it cannot be made."""
        self.run_id = f"{time.strftime('%Y%m%d-%H%M%S')}-persist-{secrets.token_hex(2)}"
        self._directory: RunDirectory = create(results, self.run_id)
        self._requests = PartWriter(self._directory.url, "requests/part", REQUESTS)
        self._name = model.resolve().name
        self._rows = 0
        self._manifest = Manifest(
            kvswarm_version=__version__,
            run_id=self.run_id,
            started_ns=time.time_ns(),
            options={"command": "persist", **options},
            scenario_name="persist",
            scenario={},
            targets=[
                TargetRecord(
                    name=self._name,
                    target={"url": model.resolve().as_uri()},
                    identity={**identity, "version": version},
                    metrics=[],
                    advice={},
                    lexicon={},
                )
            ],
            versions=versions("pyarrow", "pydantic"),
            clock_pairs=[clock_pair("start")],
            notes=[
                "The rows are answers of mlx-lm's commands, a process each, not of a server: prompt_tokens are those "
                "that were computed, prefill_ms is what that took."
            ],
        )

    @property
    def folder(self) -> str:
        return self._directory.url

    def run(self) -> RecordedRun:
        """What was written, after the context has ended."""
        return open_run(self.folder)

    def add(self, name: str, phase: str, path: list[Segment], answer: Generated, turn: int | None) -> None:
        """`turn`: 0 for a cold answer, 1 for one from the file; None: it is of the warm-up."""
        self._rows += 1
        labels = Labels(
            run_id=self.run_id,
            target=self._name,
            target_number=0,
            engine="mlx-lm",
            model=self._name,
            scenario="persist",
            kind=None,
            phase=phase,
            worker=ALONE,
            cache_salt=None,
        )
        asked = Asked(
            f"{self.run_id}-{self._rows}-{name}",
            answer.begun_ns,
            answer.begun_ns,
            path,
            OUTPUT_TOKENS,
            session=None if turn is None else 0,
            turn=turn,
            warmth=None if turn is None else "warm" if turn else "cold",
        )
        self._requests.add(request_row(labels, asked, _reply(answer)))

    def __enter__(self) -> MlxRecording:
        self._directory.write_manifest(self._manifest)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        manifest = self._manifest
        self._requests.flush()
        manifest.add_parts("requests", self._requests.parts)
        manifest.ended_ns = time.time_ns()
        manifest.phases.append(
            Phase(phase="measure", targets=(self._name,), start_ns=manifest.started_ns, end_ns=manifest.ended_ns)
        )
        if error is not None:
            manifest.problems.append(f"it was ended by {kind.__name__ if kind else 'an error'}: {error}")
        manifest.state = "complete" if error is None else "incomplete"
        manifest.stopped_by = "its end" if error is None else "error" if isinstance(error, Exception) else "user"
        manifest.clock_pairs.append(clock_pair("end"))
        self._directory.write_manifest(manifest)


def _reply(answer: Generated) -> Reply:
    return Reply(
        status="ok",
        error=None,
        http_status=None,
        finish_reason="length",
        text=answer.text,
        t_send=answer.begun_ns,
        t_first=None,
        t_last=None,
        t_end=answer.ended_ns,
        clock="user",
        clock_stepped=False,
        stamp_error_ms=None,
        last_stamp_error_ms=None,
        connect_ms=None,
        ttft_ms=None,
        tpot_ms=None,
        itl_ms=None,
        e2e_ms=(answer.ended_ns - answer.begun_ns) / 1e6,
        prompt_tokens=answer.prompt_tokens,
        prompt_tokens_source="usage",
        output_tokens=None,
        output_tokens_source=None,
        cached_tokens=None,
        cached_tokens_source=None,
        first_tokens=None,
        queue_ms=None,
        prefill_ms=answer.prompt_s * 1e3,
        decode_ms=None,
        chunks=0,
        coalesced=0,
        bytes=0,
    )
