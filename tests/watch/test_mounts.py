"""Folders on network shares are known by what the system has mounted."""

from __future__ import annotations

from pathlib import Path

import pytest
from waiting import wait_for
from watched import Daemon, Place

from memctl.watch import file_events
from memctl.watch.watch_status import watch_status

MOUNTINFO = r"""
22 1 253:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:26 / /mnt/nas rw,relatime shared:9 master:3 - nfs4 nas:/export rw,vers=4.2
31 30 253:0 /x /mnt/nas/local rw - ext4 /dev/vdb rw
32 22 0:27 / /mnt/two\040words rw - cifs //server/share rw
33 22 0:28 / /home/ann/far rw - fuse.sshfs ann@far: rw
34 22 8:1 / /mnt/stick rw - fuseblk /dev/sda1 rw
35 22 0:29 / /mnt/nas2 rw - ext4 /dev/vdc rw
36 22 0:30 / /mnt/nas2 rw - smb3 //server/other rw
""".lstrip().replace(r"\\", "\\")


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home/ann/inbox", ""),
        ("/mnt/nas", "nfs4"),
        ("/mnt/nas/deep/in it", "nfs4"),
        ("/mnt/nas/local/inbox", ""),
        ("/mnt/nasty", ""),
        ("/mnt/two words/inbox", "cifs"),
        ("/home/ann/far/notes", "fuse.sshfs"),
        ("/mnt/stick/notes", ""),
        ("/mnt/nas2/notes", "smb3"),
    ],
)
def test_the_innermost_mount_says_whether_a_folder_is_on_a_share(
    tmp_path: Path, folder: str, kind: str
) -> None:
    (tmp_path / "mountinfo").write_text(MOUNTINFO)
    assert file_events.share_type(Path(folder), tmp_path / "mountinfo") == kind


def test_without_a_list_of_mounts_no_folder_counts_as_shared(tmp_path: Path) -> None:
    assert file_events.share_type(tmp_path, tmp_path / "mountinfo") == ""


def test_an_inbox_on_a_share_is_reported_and_looked_into(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = (
        f"22 1 0:1 / / rw - ext4 /dev/vda rw\n30 22 0:2 / {place.layout.inbox} rw - nfs n:/ rw\n"
    )
    (tmp_path / "mountinfo").write_text(table)
    monkeypatch.setattr(file_events, "MOUNTS", tmp_path / "mountinfo")
    with Daemon(place), place.open() as base:
        wait_for(lambda: "polling" in [event.kind for event in place.events])
        wait_for(lambda: bool(watch_status(base).polled))
        (said,) = watch_status(base).polled
        place.drop("a.txt", "Ann sails to Lisbon.")
        wait_for(lambda: place.tree(place.layout.processed) == ["a.txt"])
    assert "network share, nfs" in said
    assert [event.kind for event in place.events].count("polling") == 1
