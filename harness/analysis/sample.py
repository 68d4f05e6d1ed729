"""Values of one figure of many requests: read piece by piece, then averaged and put in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from harness.analysis.columns import NULLABLE
from harness.analysis.health import Bools
from harness.analysis.latency import quantile
from harness.analysis.rows import Rows

Floats = npt.NDArray[Any]
"""Of as many bits as the column has them: gaps are of 32."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Values of one figure."""

    values_ms: Floats
    """In any order; `quantiles` puts them in another one."""
    weights: Floats | None = None
    """None: linear interpolation between ranks, as numpy does. Else the smallest value up to which this share of the
    weight lies, as GuideLLM does."""

    def mean(self) -> float | None:
        if not len(self.values_ms):
            return None
        if self.weights is None:
            return float(self.values_ms.mean(dtype=np.float64))
        return float(np.average(self.values_ms, weights=self.weights))

    def quantile(self, share: float) -> float | None:
        return self.quantiles([share])[0]

    def quantiles(self, shares: Sequence[float]) -> list[float] | list[None]:
        """Of each share; None without any value."""
        if not len(self.values_ms):
            return [None for _ in shares]
        if self.weights is None:
            ranks = np.array(shares) * (len(self.values_ms) - 1)
            self.values_ms.partition(np.unique([np.floor(ranks), np.ceil(ranks)]).astype(np.int64))
            return [quantile(self.values_ms, share) for share in shares]
        order = np.argsort(self.values_ms)
        reached = np.cumsum(self.weights[order])
        # As much below as rounding may take from the sum of many weights.
        places = np.searchsorted(reached, np.array(shares) * reached[-1] * (1 - 1e-12))
        return [float(value) for value in self.values_ms[order[places]]]

    @staticmethod
    def joined(pieces: Iterable[Sample]) -> Sample:
        """One of them all; one piece at least, and all with weights or none."""
        left = iter(pieces)
        first = next(left)
        values, weights = first.values_ms.copy(), None if first.weights is None else first.weights.copy()
        for piece in left:
            _append(values, piece.values_ms)
            if weights is not None and piece.weights is not None:
                _append(weights, piece.weights)
        return Sample(values, weights)


def _append(whole: Floats, piece: Floats) -> None:
    """In place: what many pieces become must not lie in memory twice."""
    start = len(whole)
    whole.resize(start + len(piece), refcheck=False)
    whole[start:] = piece


def read_sample(of: Callable[[pd.DataFrame], Sample], rows: Rows, columns: Sequence[str], which: Bools) -> Sample:
    """What `of` makes of some columns of those rows for which `which`, (rows,), holds."""
    return Sample.joined(_samples(of, rows, columns, which))


def _samples(
    of: Callable[[pd.DataFrame], Sample], rows: Rows, columns: Sequence[str], which: Bools
) -> Iterator[Sample]:
    where = None if rows.target is None else pc.field("target") == rows.target
    scanner = rows.dataset.scanner(columns=list(columns), filter=where)
    yield of(scanner.projected_schema.empty_table().to_pandas(types_mapper=_kind))
    start = 0
    for batch in scanner.to_batches():
        yield of(batch.to_pandas(types_mapper=_kind)[which[start : start + batch.num_rows]])
        start += batch.num_rows


def _kind(kind: pa.DataType) -> pd.api.extensions.ExtensionDtype | None:
    """Lists stay as they are: an object for each would take more memory than what is in them."""
    return pd.ArrowDtype(kind) if pa.types.is_list(kind) else NULLABLE.get(kind)
