"""The engine that the options name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.sim.manners.llama_cpp import LlamaCpp
from harness.sim.manners.mlx_lm import MlxLm
from harness.sim.manners.sglang import Sglang
from harness.sim.manners.vllm import Vllm
from harness.sim.options import MannerName, SimOptions
from harness.sim.web import Manner

MANNERS: Mapping[MannerName, Callable[[SimOptions], Manner]] = {
    "vllm": Vllm,
    "sglang": Sglang,
    "llama-cpp": LlamaCpp,
    "mlx-lm": MlxLm,
}


def manner_of(options: SimOptions) -> Manner:
    """A new engine, with an empty cache. Raises InputError for options of no engine."""
    return MANNERS[options.manner](options)
