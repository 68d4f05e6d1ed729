"""When sessions arrive in an open loop: a pure function of (seed, arrivals, rate), whatever the answers do.

Options of a run (`harness.swarm.options`):

    --load closed|open      closed: each user plays one session after the other; open: sessions arrive at a rate
    --rate TEXT             sessions a second on each target, over all workers: see `harness.workload.rate`
    --arrivals TEXT         poisson, constant, gamma:CV or trace: `parse_arrivals`

Session n of the workload is the n-th that arrives. A process of mean gap 1 gives how many sessions are to be due when
it does; the rate's integral, inverted, turns that into a time. So Poisson arrivals at a rate that changes are a Poisson
process of just that rate (time rescaling: Daley and Vere-Jones, An Introduction to the Theory of Point Processes,
section 7.4). Every worker walks the same sequence, and takes the sessions that are its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from harness.errors import InputError
from harness.workload.distribution import Draws
from harness.workload.rate import Rate

LEAST_CV, LARGEST_CV = 0.05, 20.0
_GAMMA = re.compile(r"gamma:(\d+(?:\.\d*)?|\.\d+)")


@dataclass(frozen=True, slots=True)
class Arrivals:
    """How sessions arrive; `str()` gives the option's text."""

    kind: Literal["poisson", "constant", "gamma", "trace"]
    """poisson: gaps of an exponential distribution; constant: equal gaps, the first session at once; gamma: gaps of a
    gamma distribution; trace: the times of the replayed trace."""
    cv: float = 1.0
    """Of gamma: standard deviation / mean of the gaps. 1 is Poisson, more is bursts, less is smoother."""

    def __str__(self) -> str:
        return f"gamma:{self.cv:g}" if self.kind == "gamma" else self.kind


_PLAIN = {"poisson": Arrivals("poisson"), "constant": Arrivals("constant"), "trace": Arrivals("trace")}


def parse_arrivals(text: str) -> Arrivals:
    """Raises InputError if `text` is none of poisson, constant, gamma:CV and trace."""
    given = text.strip()
    if given in _PLAIN:
        return _PLAIN[given]
    found = _GAMMA.fullmatch(given)
    if found is None:
        raise InputError(
            f"arrivals is {text!r}; it must be poisson, constant, trace, or gamma:CV with the coefficient of variation "
            "of the gaps, such as gamma:3 for bursts."
        )
    cv = float(found[1])
    if not LEAST_CV <= cv <= LARGEST_CV:
        raise InputError(f"arrivals is {text!r}: the coefficient of variation must be from {LEAST_CV} to {LARGEST_CV}.")
    return Arrivals("gamma", cv)


def arrival_times_s(arrivals: Arrivals, rate: Rate, seed: int) -> Iterator[float]:
    """When session 0, 1, 2, ... arrives, in seconds from the load's start; it ends where the rate does.

    `arrivals` is any but trace, whose times are those of its sessions.
    """
    for count in _counts(arrivals, seed):
        time_s = rate.time_s(count)
        if time_s is None:
            return
        yield time_s


def _counts(arrivals: Arrivals, seed: int) -> Iterator[float]:
    """How many sessions are due by the rate when session 0, 1, 2, ... arrives: a process of mean gap 1.

    A gamma process begins in its midst, as if it had gone on for ever: its first gap is what is left of one that a
    random instant falls into. Such gaps have the density x f(x), which is that of a gamma distribution whose shape is
    larger by one, and the instant is anywhere in them. So the expected number of arrivals is the rate's at any time.
    """
    if arrivals.kind == "constant":
        number = 0
        while True:
            yield float(number)
            number += 1
    random = Draws(seed, "load").stream("arrivals")
    shape = 1.0 / (arrivals.cv * arrivals.cv)
    count = random.random() * random.gammavariate(shape + 1.0, 1.0 / shape)
    while True:
        yield count
        count += random.gammavariate(shape, 1.0 / shape)
