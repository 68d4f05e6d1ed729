"""The simulated mlx-lm server beside the real one, where `--engine` names it: the same requests, in the same order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness.embedded.engine_options import MlxLmOptions
from harness.embedded.server import running_server
from harness.sim.options import SimOptions
from tests.sim.exchange import Response, ask, compare, unexplained
from tests.sim.mlx_lm_allowed import ALLOWED
from tests.sim.sized import chat, words

pytestmark = pytest.mark.optional

CHATS, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
SYSTEM, USER = {"role": "system", "content": "#" + words(40)}, {"role": "user", "content": "# time"}
SAID = {"role": "assistant", "content": "# so"}
TWO = {"messages": [SYSTEM, USER], "max_tokens": 2}
USAGE = {"stream": True, "stream_options": {"include_usage": True}}


def requests() -> Iterator[tuple[str, Any]]:
    """Path and body; None: it is a GET. None of them kills the real server, as a prompt of the store's own does."""
    for path in ("/health", "/v1/models", "/metrics", "/", CHATS):
        yield path, None
    yield "/nope", {}
    for body in (b"x", b"", b"[1]", b'{"a":', b"{}", b"null", b'"x"'):
        yield CHATS, body
    for more in (*LENGTHS, *SAMPLING, *STREAMS):
        yield CHATS, {**TWO, **more}
    for messages in MESSAGES:
        yield CHATS, {"messages": messages, "max_tokens": 2, **USAGE}
        yield "/chat/completions", {"messages": messages, "max_tokens": 2}
    for prompt in (words(9), " time", 5, [1, 2], words(9) + words(3, 20)):
        yield COMPLETIONS, {"prompt": prompt, "max_tokens": 2}
        yield COMPLETIONS, {"prompt": prompt, "max_tokens": 3, **USAGE}
    yield COMPLETIONS, {"max_tokens": 2}
    yield CHATS, {"messages": chat(2500, 2400, words(4), system=600), "max_tokens": 3, **USAGE}


LENGTHS: tuple[dict[str, Any], ...] = (
    {},
    *({"max_tokens": length} for length in (0, -1, "8", 2.0, None, True)),
    {"max_completion_tokens": 1},
)
SAMPLING: tuple[dict[str, Any], ...] = (
    *({"temperature": value} for value in ("a", -1, None)),
    *({"logit_bias": value} for value in ([1], {"a": 1}, {"5": "x"}, {"1951": -100, "1953": -100})),
    *({name: 2} for name in ("top_p", "min_p", "xtc_threshold", "logprobs", "stream")),
    *({name: -1} for name in ("top_k", "repetition_penalty", "num_draft_tokens", "presence_context_size")),
    *({"model": name} for name in (5, None, "other")),
    {"seed": "a"},
    {"adapters": 5},
    {"top_logprobs": 12},
    {"stop": ["never said"]},
)
STREAMS: tuple[dict[str, Any], ...] = (
    *({"stream": True, "stream_options": options} for options in (None, {}, {"include_usage": False})),
    {**USAGE, "max_tokens": 1},
)
PARTS = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
MESSAGES: tuple[Any, ...] = (
    "a",
    [1],
    [],
    [{"role": "user"}],
    [{"content": "x"}],
    *([{"role": "user", "content": content}] for content in (None, 5, PARTS, [{"type": "image"}])),
    [USER, SAID],
    [SYSTEM],
    [SYSTEM, SAID],
    [SYSTEM, SYSTEM, USER],
    [USER, SYSTEM, USER],
)


@pytest.fixture(scope="module")
def answers(pytestconfig: pytest.Config) -> list[tuple[Response, Response]]:
    """The real answer and the simulated one to each request."""
    if not {"mlx-lm", "all"} & set(pytestconfig.getoption("--engine").split(",")):
        pytest.skip("--engine does not name mlx-lm")
    with running_server(MlxLmOptions()) as one, running_server(SimOptions(manner="mlx-lm", time_scale=20.0)) as other:
        return [(ask(one.url, path, body), ask(other.url, path, body)) for path, body in requests()]


@pytest.mark.parametrize("number", range(len(list(requests()))), ids=[str(one)[:80] for one in requests()])
def test_both_answer_alike(answers: list[tuple[Response, Response]], number: int) -> None:
    assert unexplained(compare(*answers[number]), ALLOWED) == []
