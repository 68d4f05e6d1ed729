"""docs/running.md names every option that kvswarm adds to Locust, and no other."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from harness.swarm.options import add_arguments

PAGE = Path(__file__).parents[2] / "docs" / "running.md"


class Parser(ArgumentParser):
    """Takes Locust's own keywords of `add_argument` as well."""

    def add_argument(self, *names: Any, **keywords: Any) -> Any:
        for keyword in ("env_var", "include_in_web_ui"):
            keywords.pop(keyword, None)
        return super().add_argument(*names, **keywords)


def test_every_option_is_documented_with_its_default() -> None:
    parser = Parser(add_help=False)
    add_arguments(parser, "agent-loop")
    section = PAGE.read_text().split("## Options")[1].split("## ")[0]
    documented = dict(re.findall(r"^\| `(--[a-z-]+)` \| ([^|]*) \|", section, re.MULTILINE))
    offered = {action.option_strings[0]: action.default for action in parser._actions}
    assert documented.keys() == offered.keys()
    for option in ("--cold-start", "--warm-up-requests", "--drain-timeout", "--results"):
        default = offered[option]
        shown = documented[option].strip("` ")
        assert shown == (f"{default:g}" if isinstance(default, float) else str(default))
