"""Which replica answered stands in the request's row."""

from __future__ import annotations

from tests.swarm.fakes import reply
from tests.swarm.test_row import row


def test_the_replica_is_a_column_and_null_where_no_answer_tells() -> None:
    assert row(reply(replica="10.0.0.7:8000"))["replica"] == "10.0.0.7:8000"
    assert row(reply())["replica"] is None
