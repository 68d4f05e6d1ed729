"""The request that the tests send, and the usual answers."""

from __future__ import annotations

from harness.client.reply import Reply
from harness.client.timed import TimedClient
from tests.client.wire import DONE, LAST_CHUNK, ROLE, STREAM_HEAD, word

ANSWER = STREAM_HEAD + ROLE + word("a") + word("b") + DONE + LAST_CHUNK


def post(client: TimedClient, text: str = "hello") -> Reply:
    replies: list[Reply] = []
    reply = client.post("/chat/completions", {"messages": [{"role": "user", "content": text}]}, {}, replies.append)
    assert replies == [reply]
    return reply
