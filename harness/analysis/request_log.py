"""What a target was sent, request by request, as the cache models take it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow.compute as pc

from harness.analysis.run import LOAD, TargetRun
from harness.cache.base import Item, Prompt
from harness.cache.prefix_tree import Node, PrefixTree
from harness.cache.prompt import items, tokens
from harness.workload.content import live_answer_id
from harness.workload.session import Message
from harness.workload.template import Template

_IDS = 2**64
"""Content ids and the ids of words are below."""
_COLUMNS = (
    "run_id", "request_id", "session", "turn", "phase", "kind", "warmth", "status", "replica", "slot", "cache_salt",
    "t_send", "t_first", "t_last", "t_end", "prompt_tokens", "cached_tokens", "output_tokens", "planned_prompt_tokens",
    "planned_output_tokens", "path", "path_tokens", "path_levels",
)  # fmt: skip
_CHATS = (("user",), ("system", "user"), ("user", "assistant", "user"), ("system", "user", "assistant", "user"))


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request. Its items are stretches between the places where the log's prompts and answers part or end.

    So an item's id stands for its text and for all before it: equal ids are equal prefixes. Requests with different
    cache salts have no item in common.
    """

    prompt: Prompt
    prompt_tokens: int
    output: Prompt
    """What followed the prompt; empty if the answer did not arrive whole."""
    sent_ns: int
    first_ns: int | None
    """When its prompt was computed; None: it never was, as far as is known."""
    end_ns: int
    complete: bool
    """False: the request failed, or was given up."""
    slot: int | None
    replica: str | None = None
    """Which of the target's replicas answered; None: the answer does not tell."""


def logged_request(
    prompt: Prompt,
    output: Prompt,
    stamps: tuple[int, int | None, int | None, int | None],
    status: str,
    slot: int | None,
    replica: str | None,
) -> LoggedRequest:
    """`stamps`: t_send, t_first, t_last, t_end of its row."""
    sent, first, _, _ = stamps
    return LoggedRequest(
        prompt=prompt,
        prompt_tokens=tokens(prompt),
        output=output,
        sent_ns=sent,
        first_ns=None if first is None else max(sent, first),
        # A request without an end was cut off, or timed out: it was under way at least until here.
        end_ns=max(stamp for stamp in stamps if stamp is not None),
        complete=status == "ok",
        slot=slot,
        replica=replica,
    )


def answer_items(identity: int, counted: int | None, planned: int | None, status: str) -> Prompt:
    """An answer as what followed its prompt: `counted` tokens, or `planned` ones where nobody counted."""
    length = planned if counted is None else counted
    return [(identity, length)] if length and status == "ok" else []


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a target's traffic the cache models were given."""

    modelled: int
    """Requests, the first in the order of `t_send`."""
    of: int
    """That reached the engine; after a complete reset of its cache the later ones alone."""

    def sentence(self) -> str | None:
        """What a table covers; None: all."""
        if self.modelled == self.of:
            return None
        return f"Of the first {self.modelled:,} of {self.of:,} requests, in order of sending; --modelled all takes all."

    def beside(self) -> str:
        """The same behind a sentence; empty: all."""
        return "" if self.modelled == self.of else f" (in the first {self.modelled:,} of {self.of:,} requests)"


@dataclass(frozen=True, slots=True)
class RequestLog:
    """The traffic of a target that is known, all or the first of it, in the order of `t_send`."""

    requests: tuple[LoggedRequest, ...]
    rows: pd.DataFrame
    """The row of each of them, in the same order."""
    without_path: int
    """Measured requests that were sent, and whose prompts are not known."""
    coverage: Coverage
    """Requests without a path are among these, too."""


def read_log(run: TargetRun) -> RequestLog:
    """The requests of all phases that reached the engine; after a complete reset of its cache only the later ones.

    Of these the first `run.modelled`. An answer is an item of its own, under the id that a live answer has when it is
    sent back. An answer with an error status brought nothing into the cache, so it is left out.
    """
    rows, coverage = _rows(run)
    rows = rows.sort_values("t_send", kind="stable")
    known = rows["planned_prompt_tokens"].gt(0).fillna(False) & rows["path"].notna()
    without_path = int(((rows["phase"] == "measure") & ~known).sum())
    rows = rows[known]
    return RequestLog(tuple(_requests(rows, run)), rows, without_path, coverage)


def _rows(run: TargetRun) -> tuple[pd.DataFrame, Coverage]:
    """Those that the log is made of, in the order of the parts."""
    sent_ns, reached = _reached(run)
    taken = _first(sent_ns, reached, run.modelled)
    due_ns = run.rows.read("t_due")["t_due"].to_numpy(dtype=np.int64)
    last_ns = int(due_ns[taken].max()) if taken.any() else -1
    # Parts are sorted by t_due: what is due later is not read at all.
    rows = run.rows.some(pc.field("t_due") <= last_ns, *_COLUMNS)
    return rows[taken[due_ns <= last_ns]], Coverage(int(taken.sum()), int(reached.sum()))


def _reached(run: TargetRun) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Shapes (rows,): when each was sent, below 0 if it was not, and whether it belongs into the log."""
    rows = run.rows.read("t_send", "status", "phase", "planned_prompt_tokens")
    sent_ns = rows["t_send"].to_numpy(dtype=np.int64, na_value=-1)
    reached = (sent_ns >= 0) & (rows["status"] != "http_error").to_numpy(dtype=bool)
    of_load = reached & rows["phase"].isin(LOAD).to_numpy(dtype=bool)
    of_load &= rows["planned_prompt_tokens"].gt(0).fillna(False).to_numpy(dtype=bool)
    if run.target.cold_start.startswith("reset:") and of_load.any():
        reached &= sent_ns >= sent_ns[of_load].min()
    return sent_ns, reached


def _first(sent_ns: npt.NDArray[np.int64], reached: npt.NDArray[np.bool_], most: int | None) -> npt.NDArray[np.bool_]:
    """The first `most` of them in the order of sending; None: all."""
    if most is None or most >= reached.sum():
        return reached
    if most == 0:
        return np.zeros(len(reached), dtype=bool)
    of_reached = sent_ns[reached]
    of_reached.partition(most - 1)
    last_ns = of_reached[most - 1]
    taken: npt.NDArray[np.bool_] = reached & (sent_ns <= last_ns)
    # Of those that were sent at the same moment the first rows.
    beyond = np.flatnonzero(taken & (sent_ns == last_ns))[::-1][: int(taken.sum()) - most]
    taken[beyond] = False
    return taken


def _requests(rows: pd.DataFrame, run: TargetRun) -> Iterable[LoggedRequest]:
    names = ("t_send", "t_first", "t_last", "t_end", "slot", "replica", "cache_salt")
    columns = {name: _values(rows[name]) for name in names}
    answer_ids = _answer_ids(rows, run.number)
    prompts = _Spelling(run.target.lexicon, answer_ids)
    outputs = _outputs(rows, answer_ids)
    tree = _Stretches()
    ends = [
        tree.add(salt, prompts.of(path.tolist(), lengths.tolist()), output)
        for salt, path, lengths, output in zip(
            columns["cache_salt"], rows["path"], rows["path_tokens"], outputs, strict=True
        )
    ]
    statuses = rows["status"].tolist()
    for number, (prompt_end, whole_end) in enumerate(ends):
        sent, first, last, end, slot, replica = (columns[name][number] for name in names[:6])
        prompt, whole = tree.until(prompt_end), tree.until(whole_end)
        yield logged_request(prompt, whole[len(prompt) :], (sent, first, last, end), statuses[number], slot, replica)


def _answer_ids(rows: pd.DataFrame, target_number: int) -> list[int]:
    """The id that a live answer has in later prompts (as the swarm makes it); one of its own outside of sessions."""
    numbered = zip(rows["run_id"], _values(rows["session"]), _values(rows["turn"]), strict=True)
    return [
        _IDS + number if session is None else live_answer_id(run_id, target_number, session, turn)
        for number, (run_id, session, turn) in enumerate(numbered)
    ]


def _outputs(rows: pd.DataFrame, answer_ids: Sequence[int]) -> Iterable[Prompt]:
    counted, planned = _values(rows["output_tokens"]), _values(rows["planned_output_tokens"])
    for known in zip(answer_ids, counted, planned, rows["status"], strict=True):
        yield answer_items(*known)


class _Spelling(dict[Item, Prompt]):
    """(content id, tokens) of a segment -> its items."""

    def __init__(self, lexicon: dict[str, Any], answer_ids: Iterable[int]) -> None:
        super().__init__()
        self._words: int | None = lexicon.get("words")
        self._unspelled = {*answer_ids, *_template_ids(lexicon.get("template"))}
        """Their texts do not begin with the words of their ids."""

    def of(self, path: Sequence[int], lengths: Sequence[int]) -> list[Item]:
        return [item for segment in zip(path, lengths, strict=True) for item in self[segment]]

    def __missing__(self, segment: Item) -> Prompt:
        identity, length = segment
        self[segment] = items([identity], [length], None if identity in self._unspelled else self._words)
        return self[segment]


def _template_ids(plain: dict[str, Any] | None) -> set[int]:
    """The content ids of a template's pieces."""
    if plain is None:
        return set()
    template = Template.from_json(plain)
    chats = [
        [Message(role, ()) for role in roles]
        for roles in _CHATS
        if roles[0] in template.head and all(f"{one}>{two}" in template.between for one, two in pairwise(roles))
    ]
    return {piece.content_id for chat in chats for piece in template.path(chat)}


class _Stretches:
    """All prompts and answers of a log in one tree for each cache salt; its nodes become the items.

    Segments have an item for each word that spells their id, so that accidents count. Few of these words are places
    where prompts part, so the same prompts take far fewer items here, and the models far less time.
    """

    def __init__(self) -> None:
        self._trees: dict[str | None, PrefixTree] = {}
        self._until: dict[Node, tuple[Item, ...]] = {}

    def add(self, salt: str | None, prompt: list[Item], output: Prompt) -> tuple[Node, Node]:
        """The nodes in which the prompt ends, and the answer; they go on to end there whatever is added."""
        tree = self._trees.setdefault(salt, PrefixTree(page_tokens=1))
        prompt_end, _ = tree.insert(prompt)
        return prompt_end, tree.insert([*prompt, *output])[0] if output else prompt_end

    def until(self, node: Node) -> tuple[Item, ...]:
        """The items down to the end of `node`, after all was added."""
        way: list[Node] = []
        above: Node | None = node
        while above is not None and above.parent is not None and above not in self._until:
            way.append(above)
            above = above.parent
        known = self._until.get(above, ()) if above is not None else ()
        for below in reversed(way):
            known = (*known, (len(self._until), below.tokens))
            self._until[below] = known
        return known


def _values(column: pd.Series) -> list[Any]:
    """With None for null."""
    return column.astype(object).where(column.notna(), None).tolist()
