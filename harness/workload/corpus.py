"""Real text for documents: the manual that every Python carries, or the user's own files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import accumulate
from pathlib import Path

from harness.errors import ScenarioError
from harness.workload.scenario import PYTHON_DOCS

SEPARATOR = "\n\n"
SUFFIXES = (".txt", ".md")
_CUT_WITHIN = 200
"""A text is cut at the last white space within so many characters; text without any is cut where it is."""


@dataclass(frozen=True)
class Corpus:
    """Texts in a fixed order. Document number d is text d and all that follow, from the first again after the last."""

    texts: tuple[str, ...]

    @cached_property
    def fingerprint(self) -> str:
        """The same on two machines if all their documents are."""
        return sha256(self._joined.encode()).hexdigest()[:16]

    @cached_property
    def _joined(self) -> str:
        return "".join(text + SEPARATOR for text in self.texts)

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        return (0, *accumulate(len(text) + len(SEPARATOR) for text in self.texts))

    def text(self, document: int, chars: int) -> str:
        """The first `chars` characters of a document; documents have no end."""
        start = self._starts[document % len(self.texts)]
        text = self._joined[start : start + chars]
        while len(text) < chars:
            text += self._joined[: chars - len(text)]
        return text

    def cut(self, document: int, most_chars: int) -> int:
        """Length in characters of the longest beginning of a document, within `most_chars`, that ends with a word."""
        text = self.text(document, most_chars + 1)
        end = most_chars
        while end > max(0, most_chars - _CUT_WITHIN) and not text[end].isspace():
            end -= 1
        return len(text[:end].rstrip()) if text[end].isspace() else most_chars


def open_corpus(name: str) -> Corpus:
    """The corpus that a scenario names: python-docs, a text file (its paragraphs), or a folder of text files.

    Raises ScenarioError if there is no text there.
    """
    if name == PYTHON_DOCS:
        return Corpus(tuple(_python_docs()))
    path = Path(name)
    files = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES) if path.is_dir() else [path]
    texts = [_read(file) for file in files]
    if not path.is_dir():
        texts = texts[0].split(SEPARATOR)
    there = tuple(text.strip() for text in texts if text.strip())
    if not there:
        raise ScenarioError(
            f"The corpus {path} holds no text: give a text file or a folder with {' or '.join(SUFFIXES)} files."
        )
    return Corpus(there)


def _python_docs() -> Iterable[str]:
    try:
        from pydoc_data.topics import topics
    except ImportError:
        raise ScenarioError(
            "This Python has no pydoc_data.topics, of which the corpus python-docs is made: "
            "set corpus in the scenario to words or to a path."
        ) from None
    return (topics[name].strip() for name in sorted(topics))


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise ScenarioError(f"The corpus file {file} cannot be read as UTF-8 text: {problem}.") from problem
