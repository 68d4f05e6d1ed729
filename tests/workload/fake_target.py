"""A target to learn from: a real BPE tokeniser, trained here, behind a ChatML template."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from harness.engines.base import ChatMessages


def chatml(messages: ChatMessages) -> str:
    """The template of Qwen, SmolLM and many others."""
    turns = [f"<|im_start|>{message['role']}\n{message['content']}<|im_end|>\n" for message in messages]
    return "".join(turns) + "<|im_start|>assistant\n"


class FakeTarget:
    """The three functions that an engine adapter offers, and how often each was called."""

    def __init__(self, tokenizer: Tokenizer, template: Callable[[ChatMessages], str] = chatml) -> None:
        self.tokenizer = tokenizer
        self.template = template
        self.text_calls = 0
        self.chat_calls = 0

    def tokens(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def count_text(self, text: str) -> int | None:
        self.text_calls += 1
        return len(self.tokens(text))

    def no_count_text(self, text: str) -> int | None:
        return None

    def count_chat(self, messages: ChatMessages) -> int:
        self.chat_calls += 1
        return len(self.tokens(self.template(messages)))

    def chat_tokens(self, messages: ChatMessages) -> Sequence[int] | None:
        return self.tokens(self.template(messages))

    def no_chat_tokens(self, messages: ChatMessages) -> Sequence[int] | None:
        return None


def train(words: Iterable[str]) -> Tokenizer:
    """A byte-level BPE that holds each of the words, with its leading space, as one token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=6000,
        min_frequency=1,
        special_tokens=["<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([f" {word}" for word in words], trainer)
    return tokenizer
