"""Run a notebook of docs/ from its top: `python -m tests.notebook docs/analysis.ipynb` writes the outputs into it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def executed(path: Path) -> Any:
    """The notebook with the outputs of a fresh kernel in its folder. Raises nbclient's error of a cell that fails."""
    notebook = read(path)
    # The kernel is a process of its own, which pytest's path does not reach.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    client = NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": path.parent}})
    client.execute(env=environment)
    return notebook


def main(path: Path) -> None:
    notebook = executed(path)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when it ran
    nbformat.write(notebook, path)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
