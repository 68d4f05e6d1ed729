"""What holds for the steps of every manner."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest

from harness.errors import InputError
from harness.sim.clock import play
from harness.sim.generation import Generation
from harness.sim.hardware import PRESETS
from harness.sim.options import MannerName, SimOptions
from harness.sim.scheduler import Scheduler, Step
from tests.sim.counting import WORDS, Counters, ask, asked, engine, run

MANNERS: tuple[MannerName, ...] = ("vllm", "sglang", "llama-cpp", "mlx-lm")


class Diary(Counters):
    """Who was told what, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.steps: list[Step] = []

    def arrived(self, generation: Generation) -> None:
        self.lines.append("arrived")

    def admitted(self, generation: Generation) -> None:
        super().admitted(generation)
        self.lines.append("admitted")

    def first_token(self, generation: Generation) -> None:
        super().first_token(generation)
        self.lines.append("first token")

    def stepped(self, step: Step) -> None:
        self.lines.append("stepped")
        self.steps.append(step)

    def ended(self, generation: Generation) -> None:
        super().ended(generation)
        self.lines.append("ended")


@pytest.mark.parametrize("manner", MANNERS)
def test_observers_hear_of_everything_in_its_order(manner: MannerName) -> None:
    diary, heard = Diary(), list[str]()
    scheduler = engine(manner, diary)
    scheduler.submit(asked(1, 20, 2, notify=lambda: heard.append(diary.lines[-1])), 0.0)
    run(scheduler)
    prompt_steps = ["stepped"] if manner == "mlx-lm" else []  # that of the last token is one more
    assert diary.lines == ["arrived", "admitted", *prompt_steps, "stepped", "first token", "stepped", "ended"]
    assert heard == [*prompt_steps, "first token", "ended"]


@pytest.mark.parametrize("manner", MANNERS)
def test_times_are_those_of_the_steps(manner: MannerName) -> None:
    diary = Diary()
    scheduler = engine(manner, diary)
    request = asked(1, 20, 3)
    ended_s = play(scheduler, [(2.0, request)])
    first = 2 if manner == "mlx-lm" else 1
    assert (request.arrived_s, request.admitted_s) == (2.0, 2.0)
    assert request.first_token_s == diary.steps[first - 1].ended_s
    assert request.ended_s == diary.steps[-1].ended_s == ended_s
    assert all(one.ended_s == other.began_s for one, other in pairwise(diary.steps))


def test_a_step_takes_what_its_tokens_cost() -> None:
    diary = Diary()
    scheduler = engine("vllm", diary, page_tokens=4)
    ask(scheduler, range(21), 2)
    ask(scheduler, range(30), 2)  # 20 are cached, and 10 computed
    cost = PRESETS["h100-8b"].cost
    pairs = 10 * 20 + 10 * 11 // 2
    assert [(step.prompt_tokens, step.decoding, step.context_tokens) for step in diary.steps[2:]] == [
        (10, 0, 20),
        (0, 1, 30),
    ]
    expected = cost.step_s + 10 * cost.new_token_s + 20 * cost.context_token_s + pairs * cost.attention_s
    assert diary.steps[2].duration_s == pytest.approx(expected)
    expected = cost.step_s + cost.new_token_s + 30 * cost.context_token_s + 31 * cost.attention_s
    assert diary.steps[3].duration_s == pytest.approx(expected)


def durations(**options: Any) -> list[float]:
    diary = Diary()
    ask(engine("vllm", diary, **options), range(20), 400)
    return [step.duration_s for step in diary.steps]


def test_jitter_comes_from_the_seed_and_changes_no_mean() -> None:
    still, one, same, other = (
        durations(**options) for options in ({}, {"jitter": 0.2}, {"jitter": 0.2}, {"jitter": 0.2, "seed": 1})
    )
    assert one == same
    assert one != other
    factors = [shaken / plain for shaken, plain in zip(one, still, strict=True)]
    assert all(factor > 0 for factor in factors)
    assert sum(factors) / len(factors) == pytest.approx(1.0, abs=0.04)  # 4 standard errors
    spread = sum((factor - 1) ** 2 for factor in factors) / len(factors)
    assert spread**0.5 == pytest.approx(0.2, rel=0.2)


def test_an_answer_ends_at_the_first_token_that_stops_it() -> None:
    said = ask(engine("vllm"), range(20), 10).output_ids
    stopped = ask(engine("vllm"), range(20), 10, stop_ids=(said[4],))
    place = said.index(said[4])
    assert (stopped.output_ids, stopped.end) == (said[: place + 1], "stop")


@pytest.mark.parametrize(
    ("options", "prompt_tokens", "output_tokens", "fits"),
    [
        ({"manner": "vllm", "page_tokens": 16, "context_tokens": 128}, 100, 13, True),  # 7 blocks can be used
        ({"manner": "vllm", "page_tokens": 16, "context_tokens": 128}, 100, 14, False),
        ({"manner": "sglang"}, 100, 26, True),
        ({"manner": "sglang"}, 100, 27, False),
        ({"manner": "sglang", "page_tokens": 16}, 100, 11, True),
        ({"manner": "sglang", "page_tokens": 16}, 100, 12, False),
    ],
)
def test_what_never_fits_is_refused_at_once(
    options: Mapping[str, Any], prompt_tokens: int, output_tokens: int, fits: bool
) -> None:
    counters = Counters()
    scheduler = engine(counters=counters, kv_tokens=128, **options)
    request = asked(1, prompt_tokens, output_tokens)
    scheduler.submit(request, 3.0)
    if fits:
        run(scheduler)
        assert (request.end, request.refusal) == ("length", None)
    else:
        assert (request.end, request.ended_s, request.admitted_s) == ("abort", 3.0, None)
        tokens, room = prompt_tokens + output_tokens, scheduler.kv_capacity_tokens
        assert request.refusal == f"its {tokens} tokens do not fit into {room} tokens of KV cache"
        assert scheduler.begin(3.0) is None
        assert counters.seen["ended by abort"] == 1


@pytest.mark.parametrize("manner", MANNERS)
def test_to_hang_up_on_what_has_ended_changes_nothing(manner: MannerName) -> None:
    counters = Counters()
    scheduler = engine(manner, counters)
    request = ask(scheduler, range(20), 2)
    scheduler.abort(request, 9.0)
    assert (request.end, counters.seen["ended by abort"]) == ("length", 0)


def test_only_llama_cpp_has_slots() -> None:
    assert [len(engine(manner, slots=3, kv_tokens=49152).slots) for manner in MANNERS] == [0, 0, 3, 0]


def test_an_engine_that_could_not_start_is_said_so() -> None:
    with pytest.raises(InputError, match="There is no preset moon"):
        Scheduler(SimOptions(manner="vllm", preset="moon"), Counters(), WORDS)
