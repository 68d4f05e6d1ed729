"""Learning a lexicon from a target: which words are one token, what the template adds, where documents are cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from harness.engines.base import ChatMessages
from harness.errors import TargetError
from harness.workload.content import content_id
from harness.workload.corpus import open_corpus
from harness.workload.documents import CannotFit, fit_documents
from harness.workload.lexicon import Lexicon
from harness.workload.scenario import LongDocument, Scenario
from harness.workload.session import Message, Segment
from harness.workload.template import OPENER, measure_template
from harness.workload.text import Renderer
from harness.workload.vocabulary import WordSearch
from harness.workload.words import CANDIDATES
from harness.workload.workload import Workload

FEWEST_WORDS = 16
MOST_WORDS, MOST_CALLS = 512, 90
"""Words wanted, and questions asked for them, where the target counts the tokens of a text."""
MOST_WORDS_BY_CHAT, MOST_CALLS_BY_CHAT = 128, 30
"""The same where each count takes a chat request."""


def learn(
    count_text: Callable[[str], int | None],
    count_chat: Callable[[ChatMessages], int],
    chat_tokens: Callable[[ChatMessages], Sequence[int] | None],
    scenario: Scenario,
    candidates: Sequence[str] = CANDIDATES,
) -> Lexicon:
    """Ask a target, through an engine adapter's three functions, all that the prompts of `scenario` need.

    Words are looked for among `candidates`, in their order.
    Where the target counts the tokens of a text this takes at most 100 calls, and some 3 for each different document;
    where it does not (`count_text` gives None), at most 40 chats are counted, and documents are made of words.
    Raises TargetError if too few words are one token.
    """
    workload = Workload(scenario, "")
    opener_tokens = count_text(OPENER)
    if opener_tokens is None:
        search = WordSearch(lambda text: count_chat(_user_chat(OPENER + text)), MOST_CALLS_BY_CHAT)
        words = search.run(candidates, MOST_WORDS_BY_CHAT)
    else:
        search = WordSearch(lambda text: _counted(count_text, OPENER + text), MOST_CALLS)
        words = search.run(candidates, MOST_WORDS)
    if len(words) < FEWEST_WORDS:
        raise TargetError(
            f"Only {len(words)} of {search.tried} common English words are one token each for this target (and for "
            f"those named before it); at least {FEWEST_WORDS} are needed to send prompts of known length: use models "
            "whose tokenisers know English."
        )
    if opener_tokens is None:
        opener_tokens = _opener_tokens(words[0], count_chat)
    template = measure_template(words, workload.roles, opener_tokens, count_chat, chat_tokens)
    lexicon = Lexicon(words, template, documents=(), corpus="", exact=True, notes=())
    if not template.head_known:
        lexicon = _noted(
            lexicon,
            "The chat template was counted, not seen (the target shows no token ids, or the template moves messages): "
            "prompts have the right length, but hits may differ by the template's tokens from what is expected.",
        )
    if isinstance(scenario, LongDocument) and workload.documents_needed:
        lexicon = _with_documents(lexicon, scenario, workload.documents_needed, count_text)
    return _checked(lexicon, workload, count_chat)


def _with_documents(
    lexicon: Lexicon, scenario: LongDocument, lengths: Sequence[int], count_text: Callable[[str], int | None]
) -> Lexicon:
    opener_tokens = count_text(OPENER)
    if opener_tokens is None:
        return _noted(
            lexicon, "Documents are made of words, not of real text: the target does not count the tokens of a text."
        )
    corpus = open_corpus(scenario.corpus)
    try:
        fits = fit_documents(
            corpus, lexicon.words, lengths, lambda text: _counted(count_text, OPENER + text) - opener_tokens
        )
    except CannotFit as problem:
        return _noted(
            lexicon, f"Documents are made of words, not of real text, which does not add up on this target: {problem}."
        )
    return replace(lexicon, documents=fits, corpus=corpus.fingerprint)


def _checked(lexicon: Lexicon, workload: Workload, count_chat: Callable[[ChatMessages], int]) -> Lexicon:
    """The lexicon, with `exact` false if a chat of random words, or the shortest document, counts not as predicted."""
    renderer = Renderer(lexicon, workload.scenario)
    for name, messages in _check_chats(lexicon, workload):
        predicted, counted = lexicon.template.tokens(messages), count_chat(renderer.chat(messages))
        if predicted != counted:
            lexicon = replace(
                _noted(
                    lexicon, f"Lengths are approximate: {name} of {predicted} tokens counts {counted} on this target."
                ),
                exact=False,
            )
    return lexicon


def _check_chats(lexicon: Lexicon, workload: Workload) -> Iterator[tuple[str, list[Message]]]:
    def message(role: str, tokens: int) -> Message:
        return Message(role, (Segment(role, content_id("check", role, tokens), tokens),))

    rounds = [("assistant", 31), ("user", 17), ("assistant", 12), ("user", 29)] if "assistant" in workload.roles else []
    system = [("system", 41)] if "system" in workload.roles else []
    yield "a chat", [message(role, tokens) for role, tokens in [*system, ("user", 23), *rounds]]
    if lexicon.documents_real:
        tokens, document = min((tokens, number) for number, tokens in enumerate(workload.documents_needed))
        shortest = Segment("document", content_id("check", "document"), tokens, document=document)
        yield "a chat with a document", [Message("system", (shortest,)), message("user", 23)]


def _opener_tokens(word: str, count_chat: Callable[[ChatMessages], int]) -> int:
    """Tokens of the opener by comparison with the letter a, which every tokeniser has as one."""
    return count_chat(_user_chat(f"{OPENER} {word}")) - count_chat(_user_chat(f"a {word}")) + 1


def _user_chat(content: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": content}]


def _counted(count_text: Callable[[str], int | None], text: str) -> int:
    tokens = count_text(text)
    if tokens is None:
        raise TargetError("The target counted the tokens of one text but not of the next: try again, or see its log.")
    return tokens


def _noted(lexicon: Lexicon, note: str) -> Lexicon:
    return replace(lexicon, notes=(*lexicon.notes, note))
