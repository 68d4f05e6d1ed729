"""What a simulated engine makes of text: the tokeniser and chat template of the tiny model, both ways."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from tokenizers import Tokenizer

from harness.embedded.hugging_face import tokenizer_json
from harness.embedded.tiny_tokenizer import (
    END_OF_TEXT,
    SPECIAL_TOKENS,
    TURN_END,
    TURN_START,
    byte_symbols,
    train,
)
from harness.workload.words import CANDIDATES

SPACE = byte_symbols()[ord(" ")]
KEPT_TOKENS = 4_000_000
"""How many tokens of messages are kept, the latest ones: a session's history comes again with each of its turns."""


class Vocabulary:
    """Text to token ids and back, as the real engines do it with the tiny model.

    A text that holds a special token, such as `<|im_end|>`, means that token.
    """

    def __init__(self) -> None:
        learnt = train(CANDIDATES)
        byte_of = {symbol: bytes([byte]) for byte, symbol in enumerate(byte_symbols())}
        self._tokenizer: Tokenizer = Tokenizer.from_str(json.dumps(tokenizer_json(learnt)))
        self._id_of = {token: number for number, token in enumerate(learnt.tokens)}
        # Each id is one object, however often it stands in the prompts that are kept.
        self._numbers = list(range(len(learnt.tokens)))
        self._kept = Kept(KEPT_TOKENS)
        self._word_id = {word: self._id_of[f"{SPACE}{word}"] for word in CANDIDATES}
        self.tokens: tuple[str, ...] = learnt.tokens
        """How each token is written in the tokeniser's file, by its id."""
        self.words: tuple[int, ...] = tuple(sorted(learnt.whole_words))
        """The tokens that are a word with the space before it: what answers are made of."""
        self.bytes: tuple[bytes, ...] = tuple(
            token.encode() if token in SPECIAL_TOKENS else b"".join(byte_of[symbol] for symbol in token)
            for token in learnt.tokens
        )
        """What each token stands for, by its id."""
        self.in_json: tuple[bytes, ...] = tuple(
            json.dumps(text.decode(errors="replace"), ensure_ascii=False).encode()[1:-1] for text in self.bytes
        )
        """The same as it stands inside a JSON string; exact for tokens that are whole characters, as all words are."""

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def end_of_text(self) -> int:
        return self._id_of[END_OF_TEXT]

    @property
    def turn_end(self) -> int:
        """The token that ends an answer."""
        return self._id_of[TURN_END]

    def has(self, ids: Iterable[int]) -> bool:
        """Whether all of these are tokens."""
        return all(0 <= number < len(self.tokens) for number in ids)

    def encode(self, text: str) -> list[int]:
        # The tokeniser never joins two words, so text that is made of known ones needs no more than a look into a
        # table, at a thirtieth of the time.
        first, *rest = text.split(" ")
        try:
            return [*self._encode(first), *map(self._word_id.__getitem__, rest)]
        except KeyError:
            return self._encode(text)

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return [self._numbers[token] for token in ids]

    def encode_chat(self, messages: Iterable[Mapping[str, str]], generation_prompt: bool = True) -> list[int]:
        """The ids of `render(messages)`; those of each message are kept, as it is sent again with the next turn."""
        ids: list[int] = []
        for message in messages:
            ids += self._message(message["role"], message["content"])
        if generation_prompt:
            ids += self._opening("assistant\n")
        return ids

    def system_tokens(self, messages: Sequence[Mapping[str, str]]) -> int:
        """How many tokens a first message of the role "system" is; 0 if there is none."""
        if not messages or messages[0]["role"] != "system":
            return 0
        return len(self._message("system", messages[0]["content"]))

    def decode(self, ids: Iterable[int], special: bool = True) -> str:
        """The text; without special tokens if `special` is false. Bytes that are no character become U+FFFD."""
        numbers = ids if special else (number for number in ids if self.tokens[number] not in SPECIAL_TOKENS)
        return b"".join([self.bytes[number] for number in numbers]).decode(errors="replace")

    def _message(self, role: str, content: str) -> list[int]:
        # Special tokens cut a text into parts that know nothing of each other: a role and its content are one of them.
        text = f"{role}\n{content}"
        ids = self._kept.get(text)
        if ids is None:
            ids = [*self._opening(text), self.turn_end, *self.encode("\n")]
            self._kept.put(text, ids)
        return ids

    def _opening(self, text: str) -> list[int]:
        return [self._id_of[TURN_START], *self.encode(text)]


@cache
def tiny_vocabulary() -> Vocabulary:
    """The one that all engines of a process share."""
    return Vocabulary()


def render(messages: Iterable[Mapping[str, str]], generation_prompt: bool = True) -> str:
    """The chat as the tiny model's template writes it."""
    turns = (f"{TURN_START}{one['role']}\n{one['content']}{TURN_END}\n" for one in messages)
    return "".join(turns) + (f"{TURN_START}assistant\n" if generation_prompt else "")


class Kept:
    """The ids of texts, the least recently used ones dropped when all together are more than `most_tokens`."""

    def __init__(self, most_tokens: int) -> None:
        self._most_tokens = most_tokens
        self._tokens = 0
        self._ids: OrderedDict[str, list[int]] = OrderedDict()

    def get(self, text: str) -> list[int] | None:
        ids = self._ids.get(text)
        if ids is not None:
            self._ids.move_to_end(text)
        return ids

    def put(self, text: str, ids: list[int]) -> None:
        self._ids[text] = ids
        self._tokens += len(ids)
        while self._tokens > self._most_tokens:
            _, oldest = self._ids.popitem(last=False)
            self._tokens -= len(oldest)
