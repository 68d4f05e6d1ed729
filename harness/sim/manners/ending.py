"""Where an answer of vLLM or SGLang ends before its greatest length, and what is said of it until then."""

from __future__ import annotations

from collections.abc import Sequence

from harness.sim.driver import Stream
from harness.sim.manners.engine import Engine
from harness.sim.manners.openai import Asked, Body, in_json
from harness.sim.manners.stops import spoken


def set_ending(asked: Asked, body: Body, engine: Engine) -> None:
    """Shorten the answer to where a stop string or a forced end token comes.

    Answers have no end of their own. They come to one where `logit_bias` forces the token that ends an answer, after
    `min_tokens` others; with `ignore_eos` they go on, and say nothing. And they end at the first of `stop`, which is
    looked for in the answer as it will be.
    """
    vocabulary = engine.vocabulary
    if body.forced_token() == vocabulary.turn_end:
        if body.ignore_eos:
            asked.pieces, asked.said = ("",) * asked.max_tokens, ""
        elif body.min_tokens < asked.max_tokens:
            asked.max_tokens, asked.stop = body.min_tokens + 1, vocabulary.turn_end
    elif body.stops:
        ahead = engine.answer_ahead(asked)
        told = spoken((vocabulary.decode([token]) for token in ahead), body.stops)
        asked.pieces, asked.said, asked.stop = told.pieces, told.text, told.stop
        asked.max_tokens = len(told.pieces)


def text_of(asked: Asked, new: Sequence[int], stream: Stream, engine: Engine) -> bytes:
    """What the tokens that were read last say, as it stands inside a JSON string."""
    in_json_of = engine.vocabulary.in_json
    if asked.stop is None and asked.pieces is None:
        return in_json_of[new[0]] if len(new) == 1 else b"".join([in_json_of[token] for token in new])
    if asked.pieces is None:
        words = new[:-1] if stream.ended else new
        return b"".join([in_json_of[token] for token in words])
    begin = stream.given - len(new)
    if stream.ended and asked.said is not None:
        text = asked.said[sum(map(len, asked.pieces[:begin])) :]
    else:
        text = "".join(asked.pieces[begin : stream.given])
    return in_json(text)[1:-1]


def whole_text(asked: Asked, engine: Engine) -> str:
    """What the answer says, when it has ended."""
    if asked.said is not None:
        return asked.said
    return engine.vocabulary.decode(asked.output_ids if asked.stop is None else asked.output_ids[:-1])


def with_end(asked: Asked, tokens: Sequence[int]) -> list[int]:
    """The answer's last tokens, with the one that ends it as it is."""
    return [*tokens[:-1], asked.stop] if isinstance(asked.stop, int) else list(tokens)
