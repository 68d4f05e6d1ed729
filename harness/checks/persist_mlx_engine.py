"""mlx-lm's own commands, a process each: compute a prompt, save its cache, or go on from a saved one."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import InputError, TargetError

TIMEOUT_S = 900.0
OUTPUT_TOKENS = 8
PRIVATE = 0o077
"""The umask under which they run: what they write is for its owner alone."""
_PROMPT = re.compile(r"^Prompt: (\d+) tokens, ([\d.]+) tokens-per-sec$", re.MULTILINE)
_ANSWER = re.compile(r"^==========\n(.*)\n==========$", re.MULTILINE | re.DOTALL)
_VERSIONS = "from importlib.metadata import version; print(version('mlx-lm'), version('mlx'))"


@dataclass(frozen=True, slots=True)
class Generated:
    """One answer. Times: ns since the epoch, those of the whole process."""

    begun_ns: int
    ended_ns: int
    prompt_tokens: int
    """That were computed; without those of a cache."""
    prompt_s: float
    """What that took, by mlx-lm's own clock."""
    text: str


@dataclass(frozen=True, slots=True)
class MlxLm:
    """mlx-lm in the environment of `python`, with one model."""

    python: str
    model: Path
    kv_bits: int | None
    kv_group_size: int

    def version(self) -> str:
        """Of mlx-lm and mlx. Raises InputError if they are not there."""
        try:
            done = subprocess.run([self.python, "-c", _VERSIONS], capture_output=True, text=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired) as error:
            reason = error.strerror if isinstance(error, OSError) else "no answer in a minute"
            raise InputError(f"--mlx-python {self.python} cannot be run: {reason}") from None
        if done.returncode != 0:
            raise InputError(
                f"--mlx-python {self.python} has no mlx-lm: give the Python of an environment that has it (that of "
                "kvswarm serve mlx-lm is .cache/engines/mlx-lm/bin/python)"
            )
        return "mlx-lm {}, mlx {}".format(*done.stdout.split())

    def generate(self, prompt: str, cache: Path | None = None) -> Generated:
        """The answer to a prompt, or to what follows the prompt of a cache file; the file stays as it is."""
        words = ["generate", "--prompt", "-", "--max-tokens", str(OUTPUT_TOKENS), "--temp", "0"]
        if cache is None:
            words += self._quantised()
        else:
            words += ["--prompt-cache-file", str(cache)]
            words += [] if self.kv_bits is None else ["--kv-group-size", str(self.kv_group_size)]
        begun_ns = time.time_ns()
        said = self._run(words, prompt)
        ended_ns = time.time_ns()
        told, answer = _PROMPT.search(said), _ANSWER.search(said)
        if told is None or answer is None or float(told[2]) <= 0:
            raise TargetError(f"mlx_lm.generate did not say how many prompt tokens it computed: {_last(said)}")
        tokens = int(told[1])
        return Generated(begun_ns, ended_ns, tokens, tokens / float(told[2]), answer[1])

    def cache_prompt(self, prompt: str, file: Path) -> float:
        """Compute a prompt and save its cache; the seconds of the whole process."""
        began = time.monotonic()
        self._run(["cache_prompt", "--prompt", "-", "--prompt-cache-file", str(file), *self._quantised()], prompt)
        return time.monotonic() - began

    def _quantised(self) -> list[str]:
        # mlx-lm would begin with it after 5,000 tokens, and the file of a shorter prompt would not be quantised.
        if self.kv_bits is None:
            return []
        words = ["--kv-bits", str(self.kv_bits), "--kv-group-size", str(self.kv_group_size)]
        return [*words, "--quantized-kv-start", "0"]

    def _run(self, words: Sequence[str], prompt: str) -> str:
        """What it prints. Raises TargetError if it fails."""
        command = [self.python, "-m", "mlx_lm", *words, "--model", str(self.model.resolve())]
        try:
            done = subprocess.run(
                command, input=prompt, capture_output=True, text=True, timeout=TIMEOUT_S, umask=PRIVATE
            )
        except subprocess.TimeoutExpired:
            raise TargetError(f"mlx_lm.{words[0]} did not end within {TIMEOUT_S:g} s") from None
        except OSError as error:
            raise TargetError(f"mlx_lm.{words[0]} could not be run: {error.strerror or error}") from None
        if done.returncode != 0:
            raise TargetError(f"mlx_lm.{words[0]} ended with code {done.returncode}: {_last(done.stderr)}")
        return done.stdout


def _last(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:300] if lines else "it said nothing"
