"""What the recorded rows say: `load` a run, `summarise` each of its targets, `render` the report or have it `as_json`.

A `Run` and its `TargetRun`s read columns when they are asked for, so that a run may be larger than memory; a `Summary`
has every number of the report, each with its own type.
"""

from harness.analysis.report import as_json, render
from harness.analysis.request_log import Coverage
from harness.analysis.rows import Rows
from harness.analysis.run import MODELLED, Run, TargetRun, load
from harness.analysis.summary import Summary, summarise

__all__ = ["MODELLED", "Coverage", "Rows", "Run", "Summary", "TargetRun", "as_json", "load", "render", "summarise"]
