"""Counting what is to come leaves it to be read."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from memctl.ingest.discovery.ingest_inputs import count_lines


@pytest.mark.parametrize(
    ("content", "lines"),
    [(b"", 0), (b"a", 1), (b"a\n", 1), (b"a\n\nb", 3), (b"\n" * 3_000_000, 3_000_000)],
)
def test_lines_are_counted_with_the_last_one_whether_or_not_it_ends(
    content: bytes, lines: int, tmp_path: Path
) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    assert count_lines(path) == lines


def test_a_stream_is_left_where_it_stood() -> None:
    stream = io.BytesIO(b"a\nb\nc\n")
    stream.readline()
    assert count_lines(stream) == 2
    assert stream.read() == b"b\nc\n"


def test_a_pipe_is_not_used_up() -> None:
    read, write = os.pipe()
    os.write(write, b"a\n")
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert count_lines(pipe) is None
        assert pipe.read() == b"a\n"
