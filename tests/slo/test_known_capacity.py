"""The search on a simulated engine whose capacity follows from queueing theory, on virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, factorial

from harness.sim.clock import play
from harness.sim.generation import Generation
from harness.sim.hardware import PRESETS
from harness.sim.options import SimOptions
from harness.sim.scheduler import Scheduler
from harness.slo.judgement import Count
from harness.slo.objective import parse_slo
from harness.slo.search import Plan, find_rate
from harness.statistics.bunching import design_effect
from harness.workload.arrivals import Arrivals, arrival_times_s
from harness.workload.rate import parse_rate
from tests.sim.counting import Counters

PROMPT = 200
# One slot, no prefix cache, answers of one token: each request takes one step of the same length, one after the other.
OPTIONS = SimOptions(manner="llama-cpp", preset="cpu", slots=1, kv_tokens=4096, prefix_caching=False)
SERVICE_S = PRESETS["cpu"].cost.duration_s(PROMPT, 0, PROMPT * (PROMPT + 1) // 2)
LIMIT_S = 4 * SERVICE_S
(P90,) = parse_slo(f"ttft_p90<{LIMIT_S * 1000:.6f}ms")


def late_share(rate: float) -> float:
    """P(wait + service >= limit) of Poisson arrivals at one server of constant service D: with t = limit - D,

    P(wait <= t) = (1 - rate D) sum over k <= t / D of (rate (k D - t))^k / k! exp(-rate (k D - t))  (Erlang, 1909).
    """
    free, t = 1 - rate * SERVICE_S, LIMIT_S - SERVICE_S
    terms = [rate * (k * SERVICE_S - t) for k in range(int(t / SERVICE_S + 1e-9) + 1)]
    return 1 - free * sum(term**k / factorial(k) * exp(-term) for k, term in enumerate(terms))


def capacity() -> float:
    low, high = 0.0, 1 / SERVICE_S
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if late_share(middle) < P90.allowed else (low, middle)
    return low


def look(rate: float, length_s: float, arrivals: str, seed: int) -> Sequence[Count]:
    scheduler = Scheduler(OPTIONS, Counters(), list(range(100, 200)))
    asked: list[tuple[float, Generation]] = []
    for time_s in arrival_times_s(Arrivals(arrivals), parse_rate(str(rate)), seed):  # type: ignore[arg-type]
        if time_s > length_s:
            break
        asked.append((time_s, Generation(prompt_ids=[len(asked) % 90 + 100] * PROMPT, max_tokens=1)))
    play(scheduler, asked)
    late = [(one.first_token_s or 0.0) - time_s >= LIMIT_S for time_s, one in asked]
    stretch = -(-len(late) // 20)
    bunches = [(sum(late[i : i + stretch]), len(late[i : i + stretch])) for i in range(0, len(late), stretch)]
    return [Count(P90, sum(late), len(late), design_effect(bunches))]


def test_with_poisson_arrivals_the_answer_is_around_what_theory_says() -> None:
    plan = Plan(2, 32, 0.1, 0.95, 30, 3)
    answer = find_rate(plan, lambda rate, length_s: look(rate, length_s, "poisson", 1))
    assert answer.met is not None
    assert answer.not_met is not None
    assert answer.met < capacity() < answer.not_met
    assert answer.not_met / answer.met < 1.5


def test_with_even_arrivals_it_is_one_over_the_service_time() -> None:
    """Nobody waits below that rate, and above it the queue grows for as long as the load goes on."""
    plan = Plan(2, 32, 0.05, 0.95, 60, 3)
    answer = find_rate(plan, lambda rate, length_s: look(rate, length_s, "constant", 1))
    assert answer.met is not None
    assert answer.met <= 1 / SERVICE_S
    assert answer.met > 1 / SERVICE_S / 1.06
