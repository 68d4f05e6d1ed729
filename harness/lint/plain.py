"""What was found as plain values for JSON; null is "not known"."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from harness.lint.finding import Finding, Lint
from harness.lint.fixing import Fixed
from harness.lint.kinds import FIXABLE, WORDING
from harness.lint.reuse import Served


def plain(lint: Lint, fixed: Fixed | None = None) -> dict[str, Any]:
    """Everything, problems and kinds worst first; of each problem every finding."""
    value: dict[str, Any] = {
        "name": lint.name,
        "requests": len(lint.sources),
        "caches": lint.caches,
        "skipped": asdict(lint.skipped),
        "tokens": lint.how,
        "cache": asdict(lint.cache),
        "now": _served(lint.now),
        "after": _served(lint.after),
        "kinds": [
            {
                "kind": one.kind,
                "requests": one.requests,
                "lost_tokens": one.lost_tokens,
                "alone": _served(one.alone),
                "fixable": one.kind in FIXABLE,
                "advice": WORDING[one.kind].advice,
            }
            for one in lint.kinds
        ],
        "problems": [
            {
                "kind": problem.worst.kind,
                "lost_tokens": problem.lost_tokens,
                "findings": [_finding(finding, lint) for finding in problem.findings],
            }
            for problem in lint.problems
        ],
    }
    if fixed is not None:
        value["fixed"] = {"changed": fixed.changed, "now": _served(fixed.now), "after": _served(fixed.after)}
    return value


def _finding(finding: Finding, lint: Lint) -> dict[str, Any]:
    earlier, later = finding.excerpts
    return {
        "request": lint.sources[finding.request],
        "earlier": lint.sources[finding.earlier],
        "place": finding.place,
        "message": finding.message,
        "character": finding.character,
        "token": finding.token,
        "lost_tokens": finding.lost_tokens,
        "order": finding.order,
        "excerpt_earlier": asdict(earlier),
        "excerpt": asdict(later),
    }


def _served(served: Served) -> dict[str, int | float]:
    return {"prompt_tokens": served.prompt_tokens, "hit_tokens": served.hit_tokens, "hit_rate": served.hit_rate}
