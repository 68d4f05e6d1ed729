"""Figures of one target of a run by anyone's definition, each worked out once, however many files ask for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.analysis.definitions import Definition, Tool
from harness.analysis.hit_rate import of_requests
from harness.analysis.run import TargetRun
from harness.analysis.sample import Sample, read_sample
from harness.analysis.throughput import throughput
from harness.exchange.measured import STATISTICS, Rate, Statistic

Values = Mapping[Statistic, float | None]


class Ours:
    """Columns are read a few at a time, and only what was worked out is kept."""

    def __init__(self, run_id: str, run: TargetRun) -> None:
        self.run_id = run_id
        self.target = run.target.name
        self._run = run
        rows = run.rows.read("status", "cached_tokens", "prompt_tokens")
        self.hit_rate = of_requests(rows[run.is_measured]).rate
        self._timed = run.is_counted & (rows["status"] == "ok").to_numpy(dtype=bool)
        self._rates: dict[Tool, Mapping[Rate, float | None]] = {}
        self._times: dict[Callable[..., Sample], Values] = {}
        run.rows.forget()

    def times(self, definition: Definition) -> Values:
        """In ms, of the successful requests whose times count."""
        if definition.of not in self._times:
            sample = read_sample(definition.of, self._run.rows, definition.columns, self._timed)
            shares = {name: share for name, share in STATISTICS.items() if share is not None}
            means = {name: sample.mean() for name in STATISTICS if name not in shares}
            quantiles = sample.quantiles(list(shares.values()))
            self._times[definition.of] = means | dict(zip(shares, quantiles, strict=True))
        return self._times[definition.of]

    def rates(self, tool: Tool) -> Mapping[Rate, float | None]:
        """A second, of all successful requests; empty: there is no stretch of time that `tool` would divide by."""
        if tool not in self._rates:
            found = throughput(self._run, tool)
            self._run.rows.forget()
            self._rates[tool] = (
                {}
                if found is None
                else {
                    "requests": found.requests,
                    "input tokens": found.input_tokens,
                    "output tokens": found.output_tokens,
                    "tokens": found.total_tokens,
                }
            )
        return self._rates[tool]
