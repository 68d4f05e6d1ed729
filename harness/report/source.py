"""The rows of one target of a run as views of a DuckDB connection, and its measured time in bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from harness.query.views import connect
from harness.record.reader import RecordedRun

BINS = 60
"""At most, on an axis of time."""
_WIDTHS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400)

_WHICH = """CASE WHEN cached_tokens IS NULL OR prompt_tokens IS NULL THEN 'not told'
    WHEN 2 * cached_tokens >= prompt_tokens THEN 'hit' ELSE 'miss' END"""
"""SQL: a hit is a request of which at least half of the prompt came from the cache, as on the live page."""


@dataclass(frozen=True, slots=True)
class TimeBins:
    """Equal stretches of time from the first measured request on."""

    start_ns: int
    width_ns: int
    count: int

    @classmethod
    def over(cls, start_ns: int, end_ns: int) -> Self:
        """At most `BINS`, of a width that people count in; metrics are scraped once a second, so none is narrower."""
        span_s = max(end_ns - start_ns, 1) / 1e9
        width_s = next((width for width in _WIDTHS_S if span_s / width <= BINS), span_s / BINS)
        width_ns = round(width_s * 1e9)
        return cls(start_ns, width_ns, (max(end_ns - start_ns, 1) - 1) // width_ns + 1)

    @property
    def width_s(self) -> float:
        return self.width_ns / 1e9

    @property
    def end_ns(self) -> int:
        return self.start_ns + self.count * self.width_ns

    def start_s(self, number: int) -> float:
        """When bin `number` begins, in seconds since the first measured request."""
        return number * self.width_s

    def seconds(self, t_ns: int) -> float:
        return (t_ns - self.start_ns) / 1e9

    def of(self, column: str) -> str:
        """SQL: the number of the bin that a time lies in."""
        return f"(({column} - {self.start_ns}) // {self.width_ns})::SMALLINT"


class Source:
    """One target's rows as tables that fit into memory however many there are:

    - `measured`: all requests of the measured phase, with the bins in which they were `sent` and `over`;
    - `timed`: those of them that succeeded and whose times count; `drawn` puts them into an order by chance;
    - `scraped`: samples of the metrics;
    - `harness_health`: of the whole run.
    """

    def __init__(self, run: RecordedRun, target: str, all_requests: bool = False) -> None:
        """`all_requests`: the times of those under way while the harness was the bottleneck count, too."""
        self._connection = connect([run])
        own = f"target = {literal(target)}"
        ((start_ns, end_ns),) = self.ask(
            f"SELECT min(t_send), max(greatest(t_send, t_last, t_end)) FROM requests WHERE phase = 'measure' AND {own}"
        )
        self.bins = None if start_ns is None else TimeBins.over(start_ns, end_ns)
        """From the first measured request sent to the last answer; None: none was sent."""
        bins = self.bins or TimeBins(0, 1, 1)
        self._connection.execute("CREATE TYPE which AS ENUM ('hit', 'miss', 'not told')")
        self._connection.execute(
            f"""
            CREATE TABLE measured AS
            SELECT {bins.of("t_send")} AS sent, {bins.of("greatest(t_send, t_first, t_last, t_end)")} AS over,
                   prompt_tokens, cached_tokens, session, turn, late_ms::FLOAT AS late_ms
            FROM requests WHERE phase = 'measure' AND {own}
            """
        )
        self._connection.execute(
            f"""
            CREATE TABLE timed AS
            SELECT {bins.of("t_send")} AS sent, ttft_ms, tpot_ms, ({_WHICH})::which AS which, session, turn,
                   (prompt_tokens - cached_tokens) AS uncached_tokens, (hash(request_id) >> 32)::UINTEGER AS drawn
            FROM {"(FROM requests WHERE phase = 'measure')" if all_requests else "counted"}
            WHERE status = 'ok' AND {own}
            """
        )
        self._connection.execute(f"CREATE VIEW scraped AS FROM server_metrics WHERE {own}")

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql).fetchall()


def literal(text: str) -> str:
    """As SQL has it."""
    return "'" + text.replace("'", "''") + "'"
