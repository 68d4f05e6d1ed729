"""What is compared: each side is a run, one target of it, or several runs taken together."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase

from harness.errors import InputError
from harness.record.manifest import TargetRecord
from harness.record.reader import RecordedRun, open_run
from harness.record.run_directory import MANIFEST_NAME


@dataclass(frozen=True, slots=True)
class Member:
    """One target of one run."""

    run: RecordedRun
    target: TargetRecord

    @property
    def label(self) -> str:
        manifest = self.run.manifest
        return manifest.run_id if len(manifest.targets) == 1 else f"{manifest.run_id}@{self.target.name}"


@dataclass(frozen=True, slots=True)
class Side:
    """Runs that are taken together, as they repeat each other; mostly one."""

    name: str
    """A, B, ..."""
    members: tuple[Member, ...]

    @property
    def label(self) -> str:
        return ", ".join(member.label for member in self.members)


def sides_of(words: Sequence[str], results: str, *, strict: bool = True) -> list[Side]:
    """Of what the user named, in that order: RUN, RUN@TARGET, RUN,RUN or a pattern; a run of several targets is a side
    for each of them.

    Raises InputError if there are not two to some twenty sides, or a run stands on two of them; RecordError as
    `open_run`.
    """
    groups = [group for word in words for group in _groups(word, results, strict)]
    if not 2 <= len(groups) <= len(ascii_uppercase):
        raise InputError(
            f"There {'is one side' if len(groups) == 1 else f'are {len(groups)} sides'} to compare: name two runs or "
            "more, or one of several targets; runs with a comma between them are one side."
        )
    labels = [member.label for group in groups for member in group]
    if twice := next((label for label in labels if labels.count(label) > 1), None):
        raise InputError(f"{twice} is named twice: compare it with another run.")
    return [Side(name, tuple(group)) for name, group in zip(ascii_uppercase, groups, strict=False)]


def _groups(word: str, results: str, strict: bool) -> Iterator[list[Member]]:
    names = [name for part in word.split(",") for name in _names(part.strip(), results)]
    members = [_members(name, results, strict) for name in names]
    if len(names) == 1:
        yield from ([member] for member in members[0])
        return
    for name, of_run in zip(names, members, strict=True):
        if len(of_run) > 1:
            raise InputError(
                f"{name} has {len(of_run)} targets: to take it together with other runs, name one of them: "
                f"{name}@{of_run[0].target.name}"
            )
    yield [of_run[0] for of_run in members]


def _names(part: str, results: str) -> list[str]:
    if not part:
        raise InputError("A run's name is missing before or after a comma.")
    if not glob.has_magic(part):
        return [part]
    patterns = (part, str(Path(results) / part))
    found = [sorted(path for path in glob.glob(one) if (Path(path) / MANIFEST_NAME).is_file()) for one in patterns]
    names = found[0] or found[1]
    if not names:
        raise InputError(f"No run fits {part!r}, neither here nor in {results}.")
    return names


def _members(name: str, results: str, strict: bool) -> list[Member]:
    run_name, at, target_name = name.partition("@")
    run = open_run(run_name, results, strict=strict)
    targets = run.manifest.targets
    if not at:
        return [Member(run, target) for target in targets]
    chosen = [Member(run, target) for target in targets if target.name == target_name]
    if not chosen:
        known = ", ".join(target.name for target in targets)
        raise InputError(f"{run.manifest.run_id} has no target {target_name!r}; it has {known}.")
    return chosen
