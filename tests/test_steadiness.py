"""No test's outcome depends on how fast the machine is, on other tests, or on chance."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
INSTEAD = {
    "time.sleep": "wait for what is to come about: waiting.wait_for",
    "threading.active_count": "other tests leave threads that end when they like",
    "threading.enumerate": "other tests leave threads that end when they like",
    "os.urandom": "draw from random.Random with a seed",
    "hash": "it is another in each process: zlib.crc32 is not",
}
MAY = {"waiting.py", "fake_endpoint.py"}
"""What waits itself, what is slow when told to be, and what is about hashes."""


def calls(path: Path) -> Iterator[tuple[int, str]]:
    """The calls in a file; programs that tests start in a process of their own are texts there."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            yield node.lineno, ast.unparse(node.func)


def test_tests_wait_for_what_happens_and_draw_by_a_seed() -> None:
    paths = [each for each in TESTS.rglob("*.py") if "bench" not in each.relative_to(TESTS).parts]
    assert len(paths) > 100
    found = [
        f"{path.relative_to(TESTS)}:{line}: {name}: {INSTEAD[name]}"
        for path in paths
        if path.name not in MAY
        for line, name in calls(path)
        if name in INSTEAD
    ]
    assert found == []
