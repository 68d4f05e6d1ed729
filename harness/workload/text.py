"""From segments to text: the messages that are sent, and their paths."""

from __future__ import annotations

from collections.abc import Sequence

from harness.errors import ScenarioError
from harness.workload.content import content_id, cut_text, words_text
from harness.workload.corpus import Corpus, open_corpus
from harness.workload.documents import document_text
from harness.workload.lexicon import Lexicon
from harness.workload.scenario import LongDocument, Scenario
from harness.workload.session import Message, Segment
from harness.workload.template import OPENER, is_live


class Renderer:
    """Makes the text of a scenario's messages for one target."""

    def __init__(self, lexicon: Lexicon, scenario: Scenario) -> None:
        """Raises ScenarioError if the corpus on this machine is not the one that the lexicon was made with."""
        self._lexicon = lexicon
        self._corpus = _same_corpus(lexicon, scenario)

    def content(self, message: Message) -> str:
        """The content of a message: the opener and its segments; a live answer as the engine gave it."""
        text = "".join([self._text(segment) for segment in message.segments])
        return text if is_live(message) else OPENER + text

    def chat(self, messages: Sequence[Message]) -> list[dict[str, str]]:
        """The messages as an OpenAI chat request has them."""
        return [{"role": message.role, "content": self.content(message)} for message in messages]

    def path(self, messages: Sequence[Message]) -> list[Segment]:
        """All that the prompt consists of; see `Template.path`."""
        return self._lexicon.template.path(messages)

    def _text(self, segment: Segment) -> str:
        if segment.text is not None:
            return segment.text
        words = self._lexicon.words
        if segment.cut is not None:
            source, source_tokens, start, changed = segment.cut
            whole = self._text(Segment(segment.kind, source, source_tokens, segment.document))
            to_the_end = start + segment.tokens == source_tokens
            return cut_text(words, whole, start, None if to_the_end else segment.tokens, changed)
        if segment.document is None or self._corpus is None:
            return words_text(words, segment.content_id, segment.tokens)
        fit = self._lexicon.documents[segment.document]
        return document_text(self._corpus, words, segment.document, segment.content_id, segment.tokens, fit)


def unrelated_prompt(lexicon: Lexicon, tag: str, tokens: int) -> tuple[Message, ...]:
    """A prompt of one user message, `tokens` long with its template (but of one word at least), that no session sends.

    Prompts with different tags share no more than the template's head.
    """
    around = lexicon.template.tokens([Message("user", ())])
    return (Message("user", (Segment("user", content_id(tag, "unrelated"), max(1, tokens - around)),)),)


def _same_corpus(lexicon: Lexicon, scenario: Scenario) -> Corpus | None:
    if not lexicon.documents_real or not isinstance(scenario, LongDocument):
        return None
    corpus = open_corpus(scenario.corpus)
    if corpus.fingerprint != lexicon.corpus:
        raise ScenarioError(
            f"The corpus {scenario.corpus} of scenario {scenario.name} is not the one that the run was prepared with: "
            "use the same files everywhere, and for python-docs the same version of Python, or set corpus to words."
        )
    return corpus
