"""What was found, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.lint.excerpt import Excerpt
from harness.lint.finding import Lint, Problem
from harness.lint.fixing import Fixed
from harness.lint.kinds import FIXABLE, WORDING
from harness.lint.reuse import Served

MOST_PROBLEMS = 10
"""Shown one by one; the others are in the table, and all are in the JSON."""
_SHOWN_DIFFERENCE = 40
_LINES_SHOWN = 6
_VISIBLE = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_BLANK = "\u00b7"


def render(lint: Lint, console: Console) -> None:
    """Worst first, in 80 columns."""
    console.print(Text(f"{lint.name}: {_requests(len(lint.sources))}", style="bold"))
    if lint.skipped.entries:
        left_out = "1 line was" if lint.skipped.entries == 1 else f"{lint.skipped.entries:,} lines were"
        console.print(Text(f"Problem: {left_out} left out; the first: {lint.skipped.first}"))
    console.print(_rates(lint))
    if not lint.kinds:
        console.print(Text("Nothing was found that breaks a prefix."))
    else:
        console.print(_kinds(lint))
    for problem in lint.problems[:MOST_PROBLEMS]:
        console.print()
        _problem(problem, lint, console)
    if len(lint.problems) > MOST_PROBLEMS:
        console.print()
        console.print(Text(f"And {len(lint.problems) - MOST_PROBLEMS} more, which --json prints."))
    console.print()
    for sentence in _sentences(lint):
        console.print(Text(sentence))


def render_fixed(fixed: Fixed, lint: Lint, out: str, console: Console) -> None:
    """What was written."""
    console.print()
    console.print(Text(f"{out}: {_requests(len(fixed.prompts))}", style="bold"))
    for kind, requests in fixed.changed.items():
        done = f"put right in {_requests(requests)}" if requests else "nothing that is safe to change and brings reuse"
        console.print(Text(f"{kind}: {done}"))
    if not fixed.changed:
        console.print(Text("Nothing was changed: nothing was found that can be put right without changing a meaning."))
    offered = [one.kind for one in lint.kinds if one.kind not in FIXABLE]
    if offered:
        console.print(Text(f"Left as it was, as the order of a text may mean something: {', '.join(offered)}."))
    console.print(Text(f"Hit rate: {_rate(fixed.now)} before, {_rate(fixed.after)} after."))


def _rates(lint: Lint) -> Table:
    table = Table(show_header=False)
    table.add_column()
    table.add_column(overflow="fold")
    table.add_row("prompt tokens", f"{lint.now.prompt_tokens:,}")
    table.add_row("cache", _cache(lint))
    table.add_row("hit rate now", _of(lint.now))
    if lint.kinds:
        table.add_row(
            "if all is put right", f"{_of(lint.after)}: {lint.after.hit_tokens - lint.now.hit_tokens:+,} tokens"
        )
    return table


def _cache(lint: Lint) -> str:
    size = "infinite" if lint.cache.capacity_tokens is None else f"{lint.cache.capacity_tokens:,} tokens, LRU"
    block = lint.cache.block_tokens
    return f"{size}, {'exact to the token' if block == 1 else f'in blocks of {block:,} tokens'}"


def _kinds(lint: Lint) -> Table:
    table = Table("kind")
    for heading in ("requests", "tokens lost", "hit rate without it"):
        table.add_column(heading, justify="right")
    table.add_column("--fix")
    for one in lint.kinds:
        is_fixed = "yes" if one.kind in FIXABLE else "no"
        table.add_row(one.kind, f"{one.requests:,}", f"{one.lost_tokens:,}", _rate(one.alone), is_fixed)
    return table


def _problem(problem: Problem, lint: Lint, console: Console) -> None:
    worst = problem.worst
    console.print(Text(f"{worst.kind}: {WORDING[worst.kind].title}", style="bold"))
    console.print(Text(f"In {_lines(problem, lint)}; {problem.lost_tokens:,} tokens are lost behind it."))
    console.print(
        Text(
            f"First difference: {lint.sources[worst.request]}, {worst.place}, character {worst.character:,}, "
            f"token {worst.token:,}; {worst.lost_tokens:,} tokens lost."
        )
    )
    names = [lint.sources[worst.earlier], lint.sources[worst.request]]
    width = max(map(len, names))
    for name, excerpt in zip(names, worst.excerpts, strict=True):
        for line in _marked(f"  {name:{width}}  ", excerpt):
            console.print(line, overflow="fold")
    alone = next(one.alone for one in lint.kinds if one.kind == worst.kind)
    gain = f"{alone.hit_tokens - lint.now.hit_tokens:+,} tokens, a hit rate of {_rate(alone)}"
    console.print(Text(f"Better: {worst.order}."))
    console.print(Text(f"Gain with this kind alone put right in the whole log: {gain}."))
    console.print(Text(WORDING[worst.kind].advice))


def _marked(name: str, excerpt: Excerpt) -> Iterator[Text]:
    """The excerpt, and below it a mark for every character that differs."""
    before, after = _visible(excerpt.before), _visible(excerpt.after)
    differing = _visible(excerpt.differing, " " if excerpt.differing.strip() else _BLANK)
    if len(differing) > _SHOWN_DIFFERENCE:
        differing, after = f"{differing[:_SHOWN_DIFFERENCE]}...", ""
    line = Text(name + before)
    line.append(differing, style="bold reverse")
    line.append(after)
    yield line
    yield Text(" " * cell_len(name + before) + ("^" * cell_len(differing) or "^"))


def _visible(text: str, blank: str = " ") -> str:
    return "".join(_VISIBLE.get(one, blank if one == " " else one) for one in text)


def _lines(problem: Problem, lint: Lint) -> str:
    names = [lint.sources[number] for number in dict.fromkeys(finding.request for finding in problem.findings)]
    if len(names) == 1:
        return names[0]
    shown = [name.removeprefix("line ") for name in names[:_LINES_SHOWN]]
    more = f" and {len(names) - _LINES_SHOWN:,} more" if len(names) > _LINES_SHOWN else ""
    return f"{len(names):,} requests (lines {', '.join(shown)}{more})"


def _sentences(lint: Lint) -> Iterator[str]:
    yield lint.how
    if lint.caches > 1:
        yield f"The requests have {lint.caches:,} caches: one for each model and cache_salt."
    if lint.kinds:
        yield (
            "Lost: tokens that stand behind the difference, and that an earlier request had, too. Where a prompt has "
            "several, the same tokens are lost behind each."
        )
    yield "Hits are told by the rules of the cache above, requests in order, answers not kept."


def _requests(count: int) -> str:
    return "1 request" if count == 1 else f"{count:,} requests"


def _of(served: Served) -> str:
    return f"{_rate(served)} ({served.hit_tokens:,} tokens)"


def _rate(served: Served) -> str:
    return f"{served.hit_rate:.1%}".replace("%", " %")
