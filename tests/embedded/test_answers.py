"""What the tiny model says, through the real server."""

from __future__ import annotations

from harness.embedded.server import RunningServer
from harness.workload.words import CANDIDATES
from tests.embedded.dialogue import cached_tokens, chat, fresh_words, post, text_of, token_ids


def test_an_answer_is_whole_words_and_as_long_as_it_may_be(llama_cpp: RunningServer) -> None:
    answer = chat(llama_cpp, fresh_words(30), output_tokens=500)
    words = text_of(answer).split(" ")
    assert words[0] == ""
    assert len(words[1:]) == 500 == answer["usage"]["completion_tokens"]
    assert set(words[1:]) <= set(CANDIDATES)
    assert len(set(words)) > 100
    assert answer["choices"][0]["finish_reason"] == "length"


def test_different_prompts_get_different_answers(llama_cpp: RunningServer) -> None:
    answers = {text_of(chat(llama_cpp, fresh_words(30), output_tokens=8)) for _ in range(4)}
    assert len(answers) == 4


def test_an_answer_makes_the_very_same_tokens_when_it_is_sent_back(llama_cpp: RunningServer) -> None:
    body = {"prompt": fresh_words(30), "n_predict": 64, "temperature": 0, "return_tokens": True}
    answer = post(llama_cpp, "/completion", body)
    assert len(answer["tokens"]) == 64
    assert token_ids(llama_cpp, answer["content"]) == answer["tokens"]


def test_each_step_of_an_agent_loop_computes_only_what_is_new(llama_cpp: RunningServer) -> None:
    """Cached: all of the prompt before and its answer, but for the answer's last token, which is never computed."""
    contents = [fresh_words(100)]
    last = chat(llama_cpp, *contents, output_tokens=64)
    for _ in range(3):
        contents += [text_of(last), fresh_words(20)]
        step = chat(llama_cpp, *contents, output_tokens=64)
        assert cached_tokens(step) == last["usage"]["prompt_tokens"] + 64 - 1
        last = step
