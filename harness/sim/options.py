"""What a simulated engine is started with."""

from __future__ import annotations

from dataclasses import dataclass

from harness.errors import InputError
from harness.sim.hardware import PRESETS, Hardware
from harness.sim.process_options import MannerName as MannerName
from harness.sim.process_options import ProcessOptions

DEFAULT_PAGE_TOKENS: dict[MannerName, int] = {"vllm": 16, "sglang": 1, "llama-cpp": 1, "mlx-lm": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class SimOptions(ProcessOptions):
    """Options of one simulated engine; `None` stands for what follows from the manner or the preset."""

    preset: str = "h100-8b"
    """Name of the hardware and model, a key of `harness.sim.hardware.PRESETS`."""
    kv_tokens: int | None = None
    """Room for KV cache; None: the preset's. Read `capacity_tokens`. mlx-lm has no such limit."""
    context_tokens: int = 32768
    """Longest prompt + answer of one request."""
    page_tokens: int | None = None
    """Tokens of a block (vLLM) or page (SGLang); None: the engine's default. Read `granularity_tokens`."""
    slots: int = 4
    """llama.cpp: requests that are served at the same time, each with an equal part of the KV cache."""
    cache_ram_mib: int = 0
    """llama.cpp: host memory for states that slots left behind; 0: none, -1: no limit."""
    slot_save_path: str | None = None
    """llama.cpp: folder for saved slots, made if need be; None: slots are neither saved nor erased."""
    entries: int = 10
    """mlx-lm: sequences that its store keeps."""
    prefix_caching: bool = True
    report_cached: bool = True
    """Answers tell their cached tokens: vLLM's --enable-prompt-tokens-details, SGLang's --enable-cache-report."""
    dev_mode: bool = True
    """vLLM: it takes POST /reset_prefix_cache."""
    metrics: bool = True
    """llama.cpp: it has a metrics page, as with its --metrics."""
    max_running: int = 256
    """vLLM and SGLang: requests that are under way at the same time."""
    step_tokens: int = 8192
    """Tokens that one step computes at most: vLLM's token budget, SGLang's prefill chunk."""
    time_scale: float = 1.0
    """Simulated seconds in one second."""
    seed: int = 0
    """Of answers and jitter."""
    jitter: float = 0.0
    """Relative standard deviation of a step's duration."""

    @property
    def hardware(self) -> Hardware:
        return PRESETS[self.preset]

    @property
    def model_path(self) -> str:
        """What an engine says that it loaded."""
        return f"/simulated/{self.preset}"

    @property
    def capacity_tokens(self) -> int:
        """Room for KV cache in tokens; in whole blocks where it is the preset's."""
        if self.kv_tokens is not None:
            return self.kv_tokens
        return self.hardware.kv_tokens // self.granularity_tokens * self.granularity_tokens

    @property
    def granularity_tokens(self) -> int:
        """Tokens of a block or page; 1 where the engine has none."""
        return DEFAULT_PAGE_TOKENS[self.manner] if self.page_tokens is None else self.page_tokens

    def size(self) -> str:
        """In words, for people."""
        room = f"{self.capacity_tokens:,} tokens of KV cache, context {self.context_tokens:,}"
        if self.manner == "llama-cpp":
            room = f"{self.slots} slots, {self.capacity_tokens:,} tokens of KV cache"
        elif self.manner == "mlx-lm":
            room = f"a prompt cache of {self.entries} entries"
        return f"on {self.preset}, {room}"

    def check(self) -> None:
        """Raise InputError for what no process, or no engine, could be started with."""
        self.check_engine()
        ProcessOptions.check(self)

    def check_engine(self) -> None:
        """Raise InputError for what the engine would refuse to start with."""
        if self.preset not in PRESETS:
            raise InputError(f"There is no preset {self.preset}: choose one of {', '.join(PRESETS)}.")
        least = {"context tokens": 1, "slots": 1, "entries": 0, "running requests": 1, "tokens a step": 1}
        given = (self.context_tokens, self.slots, self.entries, self.max_running, self.step_tokens)
        for (name, smallest), value in zip(least.items(), given, strict=True):
            if value < smallest:
                raise InputError(f"{self.title} cannot have {value} {name}: give at least {smallest}.")
        if self.cache_ram_mib < -1:
            raise InputError(
                f"There are no {self.cache_ram_mib} MiB of host memory: give 0 (none), -1 (no limit) or more."
            )
        if not self.time_scale > 0:
            raise InputError(f"Time cannot pass {self.time_scale:g} times as fast: give a number above 0.")
        if not 0 <= self.jitter <= 1:
            raise InputError(f"A jitter of {self.jitter:g} is none: give a share of a step's duration from 0 to 1.")
        self._check_room()

    def _check_room(self) -> None:
        page, room = self.granularity_tokens, self.capacity_tokens
        if page < 1 or room < page or room % page:
            raise InputError(f"{room} tokens of KV cache are not a number of blocks of {page}: change one of them.")
        if self.manner == "vllm" and self.context_tokens > room:
            raise InputError(
                f"A context of {self.context_tokens} tokens does not fit into {room} tokens of KV cache: vLLM would "
                "not start: give less context, or more room."
            )
        if self.manner == "sglang" and self.step_tokens % page:
            raise InputError(
                f"A step of {self.step_tokens} tokens is not made of whole pages of {page}, as SGLang wants it: "
                "change one of them."
            )
