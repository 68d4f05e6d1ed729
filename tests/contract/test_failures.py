"""Requests that cannot be served, or that nobody waits for any more."""

from __future__ import annotations

import gevent

from harness.client.reply import Reply
from tests.contract.subject import CONTEXT_TOKENS, Subject, fresh_prompt

REFUSALS = {
    "llama-cpp": "exceeds the available context size",
    "vllm": "maximum context length",
    "sglang": "context length",
}


def test_a_prompt_that_is_too_long_is_refused_in_the_engines_words(subject: Subject) -> None:
    prompt = fresh_prompt(CONTEXT_TOKENS + 100)
    reply = subject.ask(prompt)
    if subject.name == "mlx-lm":  # it has no limit
        assert (reply.status, reply.prompt_tokens) == ("ok", len(prompt.ids))
        return
    assert (reply.status, reply.http_status) == ("http_error", 400)
    assert reply.error is not None
    assert REFUSALS[subject.name] in reply.error
    assert reply.t_first is None
    assert subject.ask(fresh_prompt(20)).status == "ok"


def test_a_client_that_hangs_up_leaves_the_server_well(subject: Subject) -> None:
    with subject.running_request(fresh_prompt(1900), output_tokens=4) as running:
        gevent.sleep(0.15)
    reply: Reply = running.get()
    assert reply.status == "cancelled"
    assert reply.t_send is not None
    assert reply.t_first is None, "its prefill was over before the client hung up"
    assert reply.prompt_tokens is None
    if subject.has_counters:
        assert subject.collector.settle("periodic", subject.engine.is_idle, timeout_s=60), subject.collector.reason
    prompt = fresh_prompt()
    cold, warm = subject.ask(prompt), subject.ask(prompt)
    assert cold.status == warm.status == "ok"
    assert warm.cached_tokens == subject.hit(len(prompt.ids), len(prompt.ids))
