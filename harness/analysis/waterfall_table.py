"""The waterfall as the report shows it: the targets side by side, and what it says in words."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from harness.analysis.numbers import percent, tokens
from harness.analysis.steps import Steps
from harness.analysis.tables import Footnotes, Sides
from harness.analysis.waterfall import Contributor, Waterfall

NAMED = 3
"""How many requests are named."""

_LINES = {
    "prompt_tokens": "prompt tokens",
    "shareable": "shareable",
    "granularity": "- granularity",
    "in_flight": "- in flight",
    "capacity": "- capacity",
    "routing": "- routing",
    "expected": "= expected",
    "unexplained": "- unexplained",
    "measured": "= measured",
}
"""Field of `Steps` -> line of the table."""
_MEANING = (
    "shareable: prompt tokens that some request sent before had, too. Lost of them: to whole blocks and the last "
    "token (granularity), as they were still being computed (in flight), as they were evicted (capacity), as another "
    "slot or replica held them (routing). unexplained: expected and not reported; below 0: reported and not expected."
)
_LOSSES = {
    "granularity": "granularity: blocks or pages that were not whole, and last tokens, which are always computed",
    "in_flight": "in flight: prompts that were sent while what they share was still being computed",
    "capacity": "capacity: evicted before they were asked for again",
    "routing": "routing: held by another slot or replica than the one that answered",
    "unexplained": "unexplained: by the rules of the engine they were there, and it did not report them",
}
_OFF = "capacity: prefix caching is off, so nothing was kept"


def waterfall_table(sides: Sides, notes: Footnotes) -> Table | None:
    """One line for each step, one column for each side; None if it is not known of any."""
    falls = [summary.waterfall for summary in sides.summaries]
    if not any(fall.steps for fall in falls):
        return None
    notes.need(_MEANING)
    table = sides.columns(justify="right")
    for name, label in _LINES.items():
        table.add_row(label, *(Text(_cell(fall, name, notes)) for fall in falls))
    return table


def waterfall_lines(fall: Waterfall) -> Iterator[str]:
    """Sentences that belong below the table."""
    steps = fall.steps
    if steps is None:
        return
    yield _biggest_loss(steps, fall.caching_is_off)
    if steps.measured is not None:
        of_all = "" if not fall.not_compared else f" ({fall.not_compared} more report no cached tokens)"
        yield f"As expected, to the token: {fall.exact} of {steps.requests} requests{of_all}"
    for one in fall.contributors[:NAMED]:
        yield f"  {_contribution(one)}"
    yield f"Modelled: {fall.model}"
    yield from fall.assumptions


def _cell(fall: Waterfall, name: str, notes: Footnotes) -> str:
    if fall.steps is None:
        return notes.unknown(fall.unknown["steps"])
    value = getattr(fall.steps, name)
    if value is None:
        return notes.unknown(fall.unknown[name])
    return f"{tokens(value)}  {_share(value, fall.steps):>7}"


def _share(value: int, steps: Steps) -> str:
    """Of the prompt tokens, with its sign."""
    share = percent(abs(value) / steps.prompt_tokens)
    if value >= 0:
        return share
    return share.replace("<", ">-") if share.startswith("<") else f"-{share}"


def _tokens(value: int) -> str:
    return f"{tokens(value)} token{'' if value == 1 else 's'}"


def _biggest_loss(steps: Steps, caching_is_off: bool) -> str:
    name, loss = max(steps.losses.items(), key=lambda item: item[1])
    if not steps.shareable:
        return "Nothing was shareable: no prompt began as one before it did"
    if loss <= 0:
        return "Nothing that was shareable was lost"
    why = _OFF if name == "capacity" and caching_is_off else _LOSSES[name]
    return f"Biggest loss: {_tokens(loss)} ({_share(loss, steps)} of all prompt tokens), {why}"


def _contribution(one: Contributor) -> str:
    more = "more" if one.unexplained < 0 else "fewer"
    where = "" if one.session is None else f" (session {one.session}, turn {one.turn})"
    return (
        f"{one.request_id}{where}: {_tokens(abs(one.unexplained))} {more} than expected, from token "
        f"{one.from_token:,} on ({tokens(one.measured)} instead of {tokens(one.expected)})"
    )
