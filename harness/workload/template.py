"""The tokens that a chat template puts around the messages: segments of the prompt like any other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import pairwise, takewhile
from typing import Any

from harness.engines.base import ChatMessages
from harness.workload.content import content_id
from harness.workload.session import Message, Segment

OPENER = "#"
"""Begins the content of each message, so that the first word, too, keeps its space where contents are trimmed."""


@dataclass(frozen=True, slots=True)
class Template:
    """Token counts of a template's pieces, none of them with the opener that follows."""

    opener_tokens: int
    head: Mapping[str, int]
    """Before the first content, by the role of the first message."""
    between: Mapping[str, int]
    """Between two contents, by their roles: "user>assistant"."""
    tail: Mapping[str, int]
    """After the last content, the start of the answer included, by the role of the first message."""
    head_known: bool
    """False: the pieces were only counted, not seen. Each sum is right, but what cannot be placed is put as far back
    as it can stand: all of `head` in `tail`, all of "user>assistant" in "assistant>user"."""
    reply_after_tail: bool
    """The tail is the piece between user and assistant: an answer that is sent back stands where it was generated."""
    head_shared: int = 0
    """So many tokens at the very beginning are the same whoever speaks first; 0 where the pieces were not seen."""

    def path(self, messages: Sequence[Message]) -> list[Segment]:
        """The prompt as segments from its first token to its last, the template's own and openers included.

        A live answer is sent without an opener.
        """
        first = messages[0].role
        head = [_piece("head", self.head_shared), _piece(f"head {first}", self.head[first] - self.head_shared)]
        segments = [*head, *self._content(messages[0])]
        for before, message in pairwise(messages):
            pair = f"{before.role}>{message.role}"
            segments += [_piece(pair, self.between[pair]), *self._content(message)]
        segments.append(_piece("user>assistant" if self.reply_after_tail else f"tail {first}", self.tail[first]))
        return [segment for segment in segments if segment.tokens]

    def tokens(self, messages: Sequence[Message]) -> int:
        """Length of the whole prompt."""
        return sum(segment.tokens for segment in self.path(messages))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Template:
        return cls(**plain)

    def _content(self, message: Message) -> Sequence[Segment]:
        return message.segments if is_live(message) else (_piece("opener", self.opener_tokens), *message.segments)


def is_live(message: Message) -> bool:
    """Whether the message is what the engine itself said, which is sent back as it is."""
    return any(segment.text is not None for segment in message.segments)


def measure_template(
    words: Sequence[str],
    roles: Collection[str],
    opener_tokens: int,
    count_chat: Callable[[ChatMessages], int],
    chat_tokens: Callable[[ChatMessages], Sequence[int] | None],
) -> Template:
    """Measure the pieces between the `roles` that a scenario uses, in chats that begin with the user, and with the
    system message if there is one.

    `chat_tokens` gives the token ids of a prompt where the target can tell them (at most 4 calls), else `count_chat` is
    used (at most 3). `words` are one token each; `opener_tokens` is the length of the opener by itself.
    """
    tail_of_chat = ("user", "assistant", "user") if "assistant" in roles else ("user",)
    chats = [tail_of_chat, ("system", *tail_of_chat)] if "system" in roles else [tail_of_chat]
    seen = [_pieces_seen(chat, words, chat_tokens) for chat in chats]
    if all(seen):
        return _template_of_pieces(chats, seen, opener_tokens)
    return _template_of_counts(roles, words[0], opener_tokens, count_chat)


def _pieces_seen(
    roles: Sequence[str], words: Sequence[str], chat_tokens: Callable[[ChatMessages], Sequence[int] | None]
) -> list[Sequence[int]]:
    """Token ids of the pieces around a chat's contents: from two renders that differ in each word and nowhere else.

    Empty if the target does not tell ids, or if the contents do not stand one after the other as they were given.
    """
    renders = [chat_tokens(_uniform_chat(roles, word)) for word in words[:2]]
    if renders[0] is None or renders[1] is None or len(renders[0]) != len(renders[1]):
        return []
    one, other = renders[0], renders[1]
    pieces, start, position = [], 0, 0
    for number in range(len(roles)):
        while position < len(one) and one[position] == other[position]:
            position += 1
        pieces.append(one[start:position])
        start = position
        while position < len(one) and one[position] != other[position]:
            position += 1
        if position - start != _content_words(number):
            return []
        start = position
    return [*pieces, one[start:]] if one[start:] == other[start:] else []


def _template_of_pieces(
    chats: Sequence[Sequence[str]], seen: Sequence[Sequence[Sequence[int]]], opener_tokens: int
) -> Template:
    head, tail, between = {}, {}, {}
    for roles, pieces in zip(chats, seen, strict=True):
        head[roles[0]], tail[roles[0]] = pieces[0], pieces[-1]
        between.update(
            {f"{before}>{after}": piece for (before, after), piece in zip(pairwise(roles), pieces[1:], strict=False)}
        )
    answer = between.get("user>assistant", ())
    reply_after_tail = bool(answer) and all(answer[: len(piece)] == piece for piece in tail.values())
    if reply_after_tail:
        opener_tokens = len(answer) - len(tail["user"])
    return Template(
        opener_tokens=opener_tokens,
        head={role: len(piece) - opener_tokens for role, piece in head.items()},
        between={pair: len(piece) - opener_tokens for pair, piece in between.items()},
        tail={role: len(piece) for role, piece in tail.items()},
        head_known=True,
        reply_after_tail=reply_after_tail,
        head_shared=_shared([pieces[0][: len(pieces[0]) - opener_tokens] for pieces in seen]),
    )


def _shared(heads: Sequence[Sequence[int]]) -> int:
    """How many tokens all begin with."""
    alike = (len(set(tokens)) == 1 for tokens in zip(*heads, strict=False))
    return sum(1 for _ in takewhile(bool, alike))


def _template_of_counts(
    roles: Collection[str], word: str, opener_tokens: int, count_chat: Callable[[ChatMessages], int]
) -> Template:
    def around(*chat: str) -> int:
        """Tokens of a chat that are neither words nor openers."""
        words = sum(_content_words(number) for number in range(len(chat)))
        return count_chat(_uniform_chat(chat, word)) - words - len(chat) * opener_tokens

    tail = {"user": around("user")}
    between = {}
    if "system" in roles:
        tail["system"] = around("system", "user")
        between["system>user"] = 0
    if "assistant" in roles:
        between["user>assistant"] = 0
        between["assistant>user"] = around("user", "assistant", "user") - tail["user"]
    return Template(opener_tokens, dict.fromkeys(tail, 0), between, tail, head_known=False, reply_after_tail=False)


def _uniform_chat(roles: Sequence[str], word: str) -> list[dict[str, str]]:
    return [
        {"role": role, "content": OPENER + f" {word}" * _content_words(number)} for number, role in enumerate(roles)
    ]


def _content_words(number: int) -> int:
    """Each message of a measured chat has its own length, so that messages out of order are noticed."""
    return 3 + number


@lru_cache(maxsize=64)
def _piece(name: str, tokens: int) -> Segment:
    return Segment("template", content_id("template", name, tokens), tokens)
