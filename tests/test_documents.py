"""The documentation is short, links to what exists and installs no foreign package."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")
_INSTALLS_ANOTHER_PROJECT = re.compile(r"pip install[^`\n]*(?<![\w-])memctl(?![\w-])")


def anchors(page: Path) -> set[str]:
    """The headings of a page, as a link names them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", text.lower()).replace(" ", "-") for text in headings}


def test_the_readme_is_one_page() -> None:
    assert len(PAGES[0].read_text(encoding="utf-8").splitlines()) <= 200


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target, anchor in _LINK.findall(page.read_text(encoding="utf-8")):
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), f"{target}#{anchor}"


def test_the_readme_links_to_every_page() -> None:
    readme = PAGES[0].read_text(encoding="utf-8")
    assert [page.name for page in PAGES[1:] if f"docs/{page.name}" not in readme] == []


def test_nobody_is_told_to_install_the_other_project_called_memctl() -> None:
    files = [*PAGES[1:], *(ROOT / "memctl").rglob("*.py"), ROOT / "config.example.toml"]
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert not _INSTALLS_ANOTHER_PROJECT.search(text), file
