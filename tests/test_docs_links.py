"""Links between the pages lead somewhere, and README leads to every page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def links(page: Path) -> list[tuple[Path, str]]:
    """File and anchor of each link to a file of this project."""
    found = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    parts = [target.partition("#") for target in found if "://" not in target]
    return [((page.parent / path).resolve() if path else page, anchor) for path, _, anchor in parts]


def anchors(page: Path) -> set[str]:
    """The headings, as GitHub makes anchors of them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    lost = [(path, anchor) for path, anchor in links(page) if not path.exists()]
    lost += [(path, anchor) for path, anchor in links(page) if anchor and path.exists() and anchor not in anchors(path)]
    assert lost == []


def test_the_readme_leads_to_every_page() -> None:
    assert {path for path, _ in links(README) if path.suffix == ".md"} == set(PAGES[1:])
