"""A file that becomes a link or a pipe once it was seen is neither followed nor waited for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from waiting import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes")

EVERY_READER = """
import os, sys
from pathlib import Path
from memctl.errors import MissingReader, UnreadableSource
from memctl.readers.file_kinds import FILE_KINDS

folder = Path(sys.argv[1])
(folder / "secret").write_text("the secret")
for reader in FILE_KINDS.values():
    for become in (os.mkfifo, lambda path: path.symlink_to(folder / "secret")):
        path = folder / f"file{(reader.extensions or ('.json',))[0]}"
        become(path)
        try:
            said = list(reader.load()(path, path.name))
        except MissingReader:
            said = []
        except UnreadableSource as error:
            said = [] if error.message.endswith("it is no regular file") else [error]
        except OSError as error:
            said = [] if error.strerror == "it is no regular file" else [error]
        path.unlink()
        if said:
            sys.exit(f"{reader.media_type}: {said}")
"""


def test_no_reader_follows_a_link_or_waits_for_a_pipe(tmp_path: Path) -> None:
    command = [sys.executable, "-c", EVERY_READER, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr


SWAPPED_ONCE_SEEN = """
import os, sys
from pathlib import Path
from memctl.watch import claims
sys.path.insert(0, sys.argv[2])
from watched import new_place

place = new_place(Path(sys.argv[1]))
original = claims.Claims.claim

def swapped(self, files, refused):
    for file in files:
        file.path.unlink()
        if file.path.suffix == ".txt":
            os.mkfifo(file.path)
        else:
            file.path.symlink_to("/etc/passwd")
    return original(self, files, refused)

claims.Claims.claim = swapped
place.drop("pipe.txt", "Ann sails to Lisbon.")
place.drop("link.md", "Bo stays at home.")
place.drain()
assert place.tree(place.layout.processed) == place.tree(place.layout.inbox) == []
assert not place.tree(place.layout.processing), place.tree(place.layout.processing)
reasons = [path.read_text() for path in place.layout.failed.rglob("*.reason.json")]
assert len(reasons) == 2 and all("no regular file" in each for each in reasons), reasons
assert place.rows("documents", "id") == []
"""


def test_the_watcher_takes_no_file_that_is_swapped_once_it_is_seen(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-c",
        SWAPPED_ONCE_SEEN,
        str(tmp_path),
        str(Path(__file__).parents[1]),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
