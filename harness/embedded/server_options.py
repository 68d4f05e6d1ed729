"""What has to be known of a server to start it as a process of a Python."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol


class ServerOptions(Protocol):
    """`harness.embedded.engine_options` has those of the real engines."""

    @property
    def title(self) -> str:
        """Whose server it is, in words."""
        ...

    @property
    def deadline_s(self) -> float:
        """How long it may take until it is healthy."""
        ...

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int:
        """0: any free one."""
        ...

    @property
    def alias(self) -> str:
        """The model's name in requests and answers."""
        ...

    def check(self) -> None:
        """Raise InputError for what the server would refuse, before anything is installed or started."""
        ...

    def size(self) -> str:
        """In words, for people."""
        ...

    def python(self) -> Path:
        """The Python that runs it, installed first if need be. Raises KvswarmError if that fails."""
        ...

    def arguments(self, port: int) -> list[str]:
        """What follows the name of the Python."""
        ...

    def environment(self, folder: Path) -> Mapping[str, str]:
        """Variables to set; `folder` is there as long as the server runs."""
        ...

    def target(self, url: str, folder: Path) -> str:
        """What kvswarm takes as a target: the URL, or the path of a target file, which is made in `folder`."""
        ...
