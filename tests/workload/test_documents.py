from __future__ import annotations

import pytest

from harness.workload.content import content_id
from harness.workload.corpus import Corpus, open_corpus
from harness.workload.documents import CannotFit, document_text, fit_documents
from harness.workload.words import CANDIDATES
from tests.workload.fake_target import FakeTarget

WORDS = CANDIDATES[:512]


class TextCounter:
    def __init__(self, target: FakeTarget) -> None:
        self.target = target
        self.calls = 0

    def __call__(self, text: str) -> int:
        self.calls += 1
        return len(self.target.tokens(text))


@pytest.fixture
def count(target: FakeTarget) -> TextCounter:
    return TextCounter(target)


def test_documents_of_real_text_are_exact_to_the_token(count: TextCounter) -> None:
    corpus = open_corpus("python-docs")
    lengths = [1200 + 37 * number for number in range(60)]
    fits = fit_documents(corpus, WORDS, lengths, count)
    assert count.calls <= 10 * len(lengths)
    assert count.calls <= 5 * len(lengths)
    for document, (tokens, fit) in enumerate(zip(lengths, fits, strict=True)):
        text = document_text(corpus, WORDS, document, content_id("7/run", "document", document), tokens, fit)
        assert len(count.target.tokens(text)) == tokens
        assert corpus.text(document, fit.chars) in text
        assert fit.pad <= 0.05 * tokens


def test_any_id_gives_the_same_length(count: TextCounter) -> None:
    corpus = open_corpus("python-docs")
    (fit,) = fit_documents(corpus, WORDS, [400], count)
    texts = {document_text(corpus, WORDS, 0, content_id(f"0/{nonce}", "document", 0), 400, fit) for nonce in range(50)}
    assert len(texts) == 50
    assert {len(count.target.tokens(text)) for text in texts} == {400}


def test_a_document_too_short_for_real_text_is_words(count: TextCounter) -> None:
    corpus = open_corpus("python-docs")
    for tokens in range(1, 40):
        (fit,) = fit_documents(corpus, WORDS, [tokens], count)
        text = document_text(corpus, WORDS, 0, content_id("0/", "document", 0), tokens, fit)
        assert len(count.target.tokens(text)) == tokens


def test_documents_that_begin_with_one_text_are_fitted_once(count: TextCounter) -> None:
    corpus = Corpus(("some text that is not very long", "and another one"))
    fits = fit_documents(corpus, WORDS, [200] * 50, count)
    assert fits == fits[:2] * 25
    assert count.calls <= 20


def test_a_count_that_does_not_add_up_is_told_with_its_numbers() -> None:
    def erratic(text: str) -> int:
        return 999

    with pytest.raises(CannotFit, match="document 0 has 999 tokens where 300 were wanted"):
        fit_documents(open_corpus("python-docs"), WORDS, [300], erratic)
