"""Every error that kvswarm raises on purpose.

KvswarmError            str() is one sentence: what is wrong, where, and what to do about it
├── InputError          the user's input cannot be used                      (exit code 2)
│   ├── ScenarioError   a scenario file or one of its keys
│   └── TargetError     a target that cannot be reached, understood or loaded as asked
├── IncompleteRun       the run ended, but not all of it is there            (exit code 3)
└── RecordError         a run directory that is damaged, or of a newer format (exit code 2)
"""

from __future__ import annotations


class KvswarmError(Exception):
    """Base of the tree; `exit_code` is what a command that dies of it returns."""

    exit_code = 1


class InputError(KvswarmError):
    exit_code = 2


class ScenarioError(InputError):
    pass


class TargetError(InputError):
    pass


class IncompleteRun(KvswarmError):
    exit_code = 3


class RecordError(KvswarmError):
    exit_code = 2
