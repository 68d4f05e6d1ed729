"""How a simulated engine is started as a process: where it listens, with what faults, in how many replicas."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, TypeVar

from harness.embedded.options import check_address
from harness.errors import InputError
from harness.sim.faults import parse

MannerName = Literal["vllm", "sglang", "llama-cpp", "mlx-lm"]
RouterName = Literal["round-robin", "prefix"]

TITLES: Mapping[MannerName, str] = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "llama-cpp": "llama.cpp",
    "mlx-lm": "mlx-lm",
}
REPLICA_HEADER = "X-Replica"
"""Of every response of a replica: its number."""
API_KEY_VARIABLE = "KVSWARM_SIM_API_KEY"
"""A key goes through the environment, as any user can read a command line."""
PACKAGES = ("uvicorn", "uvloop", "httptools", "tokenizers")

P = TypeVar("P", bound="ProcessOptions")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions:
    """The part of `harness.sim.options.SimOptions` that the engine itself does not see."""

    manner: MannerName
    host: str = "127.0.0.1"
    port: int = 0
    """0: any free one."""
    alias: str = "tiny"
    """The model's name in requests and answers."""
    api_key: str | None = None
    faults: tuple[str, ...] = ()
    """As `harness.sim.faults.parse` takes them."""
    request_log: str | None = None
    """File that gets a line for each request to generate that was read whole: its header X-Request-Id."""
    replicas: int = 1
    """Engines, each a process with a cache of its own; above 1 a router stands before them."""
    router: RouterName = "round-robin"
    """How that chooses: in turn, or by the longest prefix of the prompts that a replica had lately."""
    replica: int | None = None
    """The number that this engine tells in each response; None: none."""

    @property
    def title(self) -> str:
        return f"Simulated {TITLES[self.manner]}"

    @property
    def deadline_s(self) -> float:
        """How long it may take until it is healthy."""
        starting = [fault.value for fault in map(parse, self.faults) if fault.kind in ("loading", "unreachable")]
        return 60.0 + sum(starting)

    def check(self) -> None:
        """Raise InputError for what no process could be started with."""
        for text in self.faults:
            parse(text)
        if not 1 <= self.replicas <= 64:
            raise InputError(f"{self.replicas} replicas cannot be started: choose from 1 to 64.")
        missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
        if missing:
            raise InputError(
                f"Simulated engines need {' and '.join(missing)}: install the extra (pip install 'kvswarm[sim]')."
            )
        check_address(self.title, self.host, self.port)

    def python(self) -> Path:
        """This one."""
        return Path(sys.executable)

    def arguments(self, port: int) -> list[str]:
        """What follows the name of the Python; `from_json` makes these options again of the last word."""
        default = {field.name: field.default for field in fields(self)}
        chosen = {name: value for name, value in asdict(self).items() if value != default[name] and name != "api_key"}
        return ["-m", "harness.sim", json.dumps({**chosen, "port": port})]

    def environment(self, folder: Path) -> Mapping[str, str]:
        """Variables to set."""
        return {} if self.api_key is None else {API_KEY_VARIABLE: self.api_key}

    @classmethod
    def from_json(cls: type[P], text: str) -> P:
        """The options of this process."""
        given: dict[str, Any] = json.loads(text)
        given["faults"] = tuple(given.get("faults", ()))
        return cls(**given, api_key=os.environ.get(API_KEY_VARIABLE))

    def target(self, url: str, folder: Path) -> str:
        """What kvswarm takes as a target: `url`, or for replicas a target file in `folder`, which is made."""
        if self.replicas == 1:
            return url
        root = url.removesuffix("/v1")
        pages = "".join(f"  - {root}/replicas/{number}/metrics\n" for number in range(self.replicas))
        path = folder / f"sim-{self.manner}-{self.replicas}-{self.router}.yaml"
        path.write_text(f"url: {url}\nreplica_header: {REPLICA_HEADER}\nmetrics_urls:\n{pages}")
        return str(path)
