"""A part whose end is there and makes no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import RecordError
from harness.record.reader import open_run
from tests.analysis.rows import request
from tests.recorded import write_run


def test_a_footer_that_cannot_be_understood_is_damage_and_the_rest_is_read(tmp_path: Path) -> None:
    run = write_run(tmp_path, "r", [request()])
    (part,) = (Path(run) / "requests").glob("*.parquet")
    content = part.read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    part.write_bytes(content[: -8 - length] + b"\xff" * length + content[-8:])

    with pytest.raises(RecordError, match=r"part-0000-00000\.parquet is damaged: .*kvswarm repair .* --lenient"):
        open_run(run)
    found = open_run(run, strict=False)
    assert (found.requests().num_rows, len(found.problems)) == (0, 1)
