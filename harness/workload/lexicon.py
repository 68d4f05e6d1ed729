"""What has to be known of a target to send prompts of exact length: one-token words, template, cuts of documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.workload.documents import Fit
from harness.workload.template import Template


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Learnt once for a target and a scenario, then the same on all workers."""

    words: tuple[str, ...]
    """Each one token when a space stands before it."""
    template: Template
    documents: tuple[Fit, ...]
    """By document number; empty where documents are not real."""
    corpus: str
    """Fingerprint of the corpus that the documents are cut from; empty where they are not real."""
    exact: bool
    """A chat (and a document) of known length counted as predicted. False: lengths are approximate."""
    notes: tuple[str, ...]
    """What is not as it should be, a sentence each; for the report."""

    @property
    def documents_real(self) -> bool:
        """Whether documents are text of the corpus, and not words."""
        return bool(self.documents)

    def to_json(self) -> dict[str, Any]:
        """Plain values (dict, list, str, int, bool)."""
        return {
            "words": list(self.words),
            "template": self.template.to_json(),
            "documents": [list(fit) for fit in self.documents],
            "corpus": self.corpus,
            "exact": self.exact,
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Lexicon:
        return cls(
            words=tuple(plain["words"]),
            template=Template.from_json(plain["template"]),
            documents=tuple(Fit(*fit) for fit in plain["documents"]),
            corpus=plain["corpus"],
            exact=plain["exact"],
            notes=tuple(plain["notes"]),
        )
