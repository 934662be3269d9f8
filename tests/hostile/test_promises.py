"""Behind every promise of the security page there is a test."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def rows() -> list[str]:
    """The rows of the table of promises."""
    section = (ROOT / "docs" / "security.md").read_text().partition("\n## Promises\n")[2]
    table = section.partition("| promise | test |\n|---|---|\n")[2].partition("\n\n")[0]
    return table.splitlines()


def test_every_promise_names_its_tests_and_they_exist() -> None:
    assert len(rows()) >= 15
    for row in rows():
        named = _TEST.findall(row)
        assert named, f"no test is named: {row}"
        for path, name in named:
            assert f"\ndef {name}(" in (ROOT / path).read_text(), f"{path} has no {name}"
