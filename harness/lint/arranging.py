"""A whole log rearranged: what was found in one pair of prompts is put right in all that are like them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field
from typing import cast

from harness.lint.kinds import FIXABLE, KINDS, Kind
from harness.lint.moving import Mark, with_moved
from harness.lint.orders import with_keys_in_order, with_sorted_tools
from harness.lint.passages import in_order_of
from harness.lint.preamble import Corpus, with_corpus_first
from harness.lint.segments import ChatPrompt, Path, Segments
from harness.lint.spacing import with_spacing_of

_STAGES: tuple[Kind, ...] = (
    "keys-shuffled",
    "tools-shuffled",
    "timestamp-first",
    "request-id-first",
    "whitespace-changed",
    "passages-reranked",
    "preamble-first",
    "whitespace-changed",
)
"""Each on what the one before it made of all prompts. White space comes again behind what is now the same."""


@dataclass(slots=True)
class Remedies:
    """What is to be put right in each group of prompts that are like each other."""

    like: Sequence[int | None]
    """For each prompt the earlier one that it is like."""
    keys: defaultdict[tuple[int, Kind], set[Hashable]] = field(default_factory=lambda: defaultdict(set))
    """(group, kind) -> the keys of the steps that were found. A group is named by its first prompt."""
    groups: list[int] = field(init=False, default_factory=list)
    """Of each prompt."""

    def __post_init__(self) -> None:
        for number, earlier in enumerate(self.like):
            self.groups.append(number if earlier is None else self.groups[earlier])

    def add(self, number: int, kind: Kind, key: Hashable) -> None:
        """What was found in the prompt of this number."""
        self.keys[self.groups[number], kind].add(key)

    def arrange(self, prompts: Sequence[ChatPrompt], kinds: Collection[Kind] = KINDS) -> list[ChatPrompt]:
        """All prompts with what belongs to these kinds put right."""
        return self._arranged(prompts, kinds, only_harmless=False)

    def fix(self, prompts: Sequence[ChatPrompt], kinds: Collection[Kind] = FIXABLE) -> list[ChatPrompt]:
        """The same for `FIXABLE` kinds, and of white space only what cannot mean anything."""
        return self._arranged(prompts, kinds, only_harmless=True)

    def _arranged(
        self, prompts: Sequence[ChatPrompt], kinds: Collection[Kind], only_harmless: bool
    ) -> list[ChatPrompt]:
        drafts = [prompt.segments for prompt in prompts]
        for stage in _STAGES:
            if stage not in kinds:
                continue
            for number, group in enumerate(self.groups):
                keys = self.keys.get((group, stage))
                if keys:
                    earlier = self.like[number]
                    before = None if earlier is None else drafts[earlier]
                    drafts[number] = _put_right(stage, keys, before, drafts[number], only_harmless)
        return [prompt.arranged(draft) for prompt, draft in zip(prompts, drafts, strict=True)]


def _put_right(
    kind: Kind, keys: Collection[Hashable], earlier: Segments | None, later: Segments, only_harmless: bool
) -> Segments:
    match kind:
        case "tools-shuffled":
            return with_sorted_tools(later)
        case "keys-shuffled":
            for path in cast(Collection[Path], keys):
                later = with_keys_in_order(later, path)
        case "timestamp-first" | "request-id-first":
            return with_moved(later, cast(Collection[Mark], keys))
        case "preamble-first" | "passages-reranked":
            for key in sorted(keys, key=repr):
                if isinstance(key, Corpus):
                    later = with_corpus_first(later, key)
                elif earlier is not None:
                    later = in_order_of(earlier, later, cast(Path, key)) or later
        case "whitespace-changed":
            if earlier is not None:
                return with_spacing_of(earlier, later, only_harmless)
    return later
