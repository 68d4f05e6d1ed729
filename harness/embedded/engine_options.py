"""What vLLM, SGLang and mlx-lm are started with: each in an environment of its own, on a CPU, with the tiny model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from harness.embedded.environments import ENGINES, install
from harness.embedded.hugging_face import NumberFormat, tiny_folder
from harness.embedded.options import check_address
from harness.embedded.tiny_weights import Shape
from harness.errors import InputError

STAND_INS = Path(__file__).parent / "sglang_stand_ins"

_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "DO_NOT_TRACK": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions(ABC):
    """What all three have in common."""

    engine: ClassVar[str]
    """Name of the environment and of the adapter."""
    title: ClassVar[str]
    deadline_s: ClassVar[float] = 300.0
    """How long it may take until it is healthy, on a busy machine."""
    tiny_shape: ClassVar[Shape]
    number_format: ClassVar[NumberFormat]

    host: str = "127.0.0.1"
    port: int = 0
    """0: any free one."""
    model: Path | None = None
    """A folder as Hugging Face has them; None: the tiny model, made on the spot."""
    more: tuple[str, ...] = ()
    """Further words of the command line, as the engine knows them."""

    def check(self) -> None:
        """Raise InputError for what the engine would refuse after a long start."""
        if self.model is not None and not (self.model / "config.json").is_file():
            raise InputError(
                f"{self.model} is no model that {self.title} could load: give a folder with a config.json, "
                "a tokenizer and weights in safetensors files."
            )
        check_address(self.title, self.host, self.port)

    def model_folder(self) -> Path:
        return self.model or tiny_folder(ENGINES / "models", self.tiny_shape, self.number_format)

    @property
    @abstractmethod
    def alias(self) -> str:
        """The model's name in requests and answers."""

    @abstractmethod
    def size(self) -> str:
        """In words, for people."""

    def python(self) -> Path:
        """That of the engine's environment, which is installed first if need be."""
        return install(self.engine)

    @abstractmethod
    def arguments(self, port: int) -> list[str]:
        """What follows the name of the Python."""

    @abstractmethod
    def environment(self, folder: Path) -> Mapping[str, str]:
        """Variables to set; `folder` is there as long as the server runs."""

    def target(self, url: str, folder: Path) -> str:
        """What kvswarm takes as a target."""
        return url


@dataclass(frozen=True, slots=True, kw_only=True)
class PagedOptions(EngineOptions):
    """What vLLM and SGLang have in common: one pool of KV cache, in blocks or pages."""

    number_format: ClassVar[NumberFormat] = "bfloat16"

    served_name: str = "tiny"
    context_tokens: int = 8192
    """Longest prompt + answer of one request."""
    kv_tokens: int = 32768
    """KV capacity of the whole server."""
    page_tokens: int = 1
    """Tokens of a block or page."""
    prefix_caching: bool = True

    @property
    def alias(self) -> str:
        return self.served_name

    def size(self) -> str:
        return f"{self.kv_tokens} tokens of KV cache in blocks of {self.page_tokens}, context {self.context_tokens}"

    def check(self) -> None:
        EngineOptions.check(self)
        if self.page_tokens < 1 or self.kv_tokens % self.page_tokens:
            raise InputError(f"{self.kv_tokens} tokens of KV cache are not a number of blocks of {self.page_tokens}.")
        if not 0 < self.context_tokens <= self.kv_tokens:
            raise InputError(
                f"A context of {self.context_tokens} tokens does not fit into {self.kv_tokens} tokens of KV cache."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmOptions(PagedOptions):
    engine: ClassVar[str] = "vllm"
    title: ClassVar[str] = "vLLM's server"
    tiny_shape: ClassVar[Shape] = Shape()

    page_tokens: int = 32
    """vLLM's attention on a CPU wants a multiple of 32."""

    def arguments(self, port: int) -> list[str]:
        # The command `vllm` asks for the version of a distribution that this build has under another name, and ends.
        words = ["-m", "vllm.entrypoints.openai.api_server", "--host", self.host, "--port", str(port)]
        words += ["--model", str(self.model_folder()), "--served-model-name", self.alias]
        # A first start that compiles takes minutes.
        words += ["--dtype", "bfloat16", "--enforce-eager"]
        words += ["--enable-prefix-caching" if self.prefix_caching else "--no-enable-prefix-caching"]
        words += ["--enable-prompt-tokens-details", "--max-model-len", str(self.context_tokens)]
        words += ["--block-size", str(self.page_tokens)]
        words += ["--num-gpu-blocks-override", str(self.kv_tokens // self.page_tokens)]
        return [*words, *self.more]

    def environment(self, folder: Path) -> Mapping[str, str]:
        return {
            **_OFFLINE,
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_SERVER_DEV_MODE": "1",  # POST /reset_prefix_cache
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CACHE_ROOT": str(ENGINES / "vllm-cache"),
            "TORCH_COMPILE_DISABLE": "1",
            "TMPDIR": str(folder),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SglangOptions(PagedOptions):
    engine: ClassVar[str] = "sglang"
    title: ClassVar[str] = "SGLang's server"
    tiny_shape: ClassVar[Shape] = Shape(layers=3, feed_forward=6144)
    """Wide and shallow: attention in plain torch is slow even where the cache has nearly all of the prompt."""

    def arguments(self, port: int) -> list[str]:
        words = ["-m", "sglang.launch_server", "--host", self.host, "--port", str(port), "--device", "cpu"]
        words += ["--model-path", str(self.model_folder()), "--served-model-name", self.alias, "--dtype", "bfloat16"]
        words += ["--context-length", str(self.context_tokens), "--max-total-tokens", str(self.kv_tokens)]
        words += ["--page-size", str(self.page_tokens)]
        words += ["--attention-backend", "torch_native", "--sampling-backend", "pytorch", "--disable-overlap-schedule"]
        words += ["--enable-metrics", "--enable-cache-report"]
        words += ["--sleep-on-idle"]  # else it keeps a core busy while there is nothing to do
        words += [] if self.prefix_caching else ["--disable-radix-cache"]
        return [*words, *self.more]

    def environment(self, folder: Path) -> Mapping[str, str]:
        return {**_OFFLINE, "SGLANG_USE_CPU_ENGINE": "1", "PYTHONPATH": str(STAND_INS), "TMPDIR": str(folder)}


@dataclass(frozen=True, slots=True, kw_only=True)
class MlxLmOptions(EngineOptions):
    engine: ClassVar[str] = "mlx-lm"
    title: ClassVar[str] = "mlx-lm's server"
    tiny_shape: ClassVar[Shape] = Shape(layers=4, hidden=128, heads=4, kv_heads=2, feed_forward=352)
    """A million weights: the matrix products of mlx-lm's build for CPUs are slow."""
    number_format: ClassVar[NumberFormat] = "float32"

    cache_entries: int = 10
    """Prompts with their answers that it keeps; 10 is its own default."""

    @property
    def alias(self) -> str:
        """It has no other name than the path."""
        return str(self.model_folder())

    def size(self) -> str:
        return f"a prompt cache of {self.cache_entries} entries"

    def arguments(self, port: int) -> list[str]:
        words = ["-m", "mlx_lm", "server", "--host", self.host, "--port", str(port)]
        words += ["--model", str(self.model_folder()), "--prompt-cache-size", str(self.cache_entries)]
        return [*words, *self.more]

    def environment(self, folder: Path) -> Mapping[str, str]:
        # It lists the models of the hub's cache, and lists none at all where that folder does not exist.
        hub = folder / "hub"
        hub.mkdir(exist_ok=True)
        return {**_OFFLINE, "HF_HUB_CACHE": str(hub)}


KINDS: Mapping[str, type[EngineOptions]] = {kind.engine: kind for kind in (VllmOptions, SglangOptions, MlxLmOptions)}
