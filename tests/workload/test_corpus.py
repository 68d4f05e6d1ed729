from __future__ import annotations

from pathlib import Path
from pydoc_data.topics import topics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ScenarioError
from harness.workload.corpus import Corpus, open_corpus


def test_a_document_is_its_text_and_all_that_follow_from_the_first_again_after_the_last() -> None:
    corpus = Corpus(("one", "two", "three"))
    assert corpus.text(1, 25) == "two\n\nthree\n\none\n\ntwo\n\nthr"
    assert corpus.text(4, 3) == "two"


@given(
    st.lists(st.text("ab \n", min_size=1, max_size=9), min_size=1, max_size=4), st.integers(0, 9), st.integers(0, 80)
)
def test_a_text_has_the_wanted_length_whatever_the_corpus(texts: list[str], document: int, chars: int) -> None:
    corpus = Corpus(tuple(texts))
    start = document % len(texts)
    endless = "\n\n".join((texts[start:] + texts[:start]) * 50)
    assert corpus.text(document, chars) == endless[:chars]


def test_a_document_is_cut_after_a_whole_word() -> None:
    corpus = Corpus(("some words  stand here",))
    assert [corpus.text(0, corpus.cut(0, most)) for most in (4, 6, 10, 11, 13)] == [
        "some",
        "some",
        "some words",
        "some words",
        "some words",
    ]


def test_text_without_white_space_is_cut_where_it_is() -> None:
    assert Corpus(("x" * 1000,)).cut(0, 600) == 600


def test_the_default_corpus_is_pythons_own_reference_in_the_order_of_its_topics() -> None:
    corpus = open_corpus("python-docs")
    assert len(corpus.texts) == len(topics)
    assert corpus.texts[0] == topics[min(topics)].strip()


def test_a_folder_gives_its_text_files_in_the_order_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name, text in [
        ("b.txt", "bee"),
        ("a.md", " ay \n"),
        ("c.bin", "no"),
        ("sub/d.txt", "dee"),
        ("empty.txt", "\n"),
    ]:
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert open_corpus(str(tmp_path)).texts == ("ay", "bee", "dee")


def test_a_file_gives_its_paragraphs(tmp_path: Path) -> None:
    path = tmp_path / "book"
    path.write_text("one\nline\n\n\n\ntwo\n\nthree\n", encoding="utf-8")
    assert open_corpus(str(path)).texts == ("one\nline", "two", "three")


def test_the_same_texts_have_the_same_fingerprint_and_others_another() -> None:
    assert Corpus(("a", "b")).fingerprint == Corpus(("a", "b")).fingerprint
    assert Corpus(("a", "b")).fingerprint != Corpus(("b", "a")).fingerprint


@pytest.mark.parametrize("text", [b"", b"\xff\xfe not text"])
def test_a_corpus_without_text_is_refused_by_name(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "book.txt"
    path.write_bytes(text)
    with pytest.raises(ScenarioError, match=str(path)):
        open_corpus(str(path))


def test_a_folder_without_text_files_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=str(tmp_path)):
        open_corpus(str(tmp_path))
