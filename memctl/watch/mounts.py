"""Which folders are on a network share: what others change there sends no events."""

from __future__ import annotations

import os
import re
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")
"""What Linux has mounted; elsewhere nothing is known."""

_REMOTE = frozenset(
    (
        "9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "drvfs", "fuse", "gfs2",
        "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "prl_fs",
        "pvfs2", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs",
    )
)  # fmt: skip
_ESCAPED = re.compile(r"\\([0-7]{3})")


def share_type(folder: Path, mounts: Path | None = None) -> str:
    """Return the type of the network share that a folder is on; "" where it is on none.

    A file system of a program (``fuse.sshfs``) counts as one, for most of those are, but for one
    on a disk of this machine (``fuseblk``).
    """
    try:
        lines = os.fsdecode((mounts or MOUNTS).read_bytes()).splitlines()
    except OSError:
        return ""
    place = Path(os.path.realpath(folder))
    around: tuple[int, str] = (0, "")
    for line in lines:
        about, _, system = line.partition(" - ")
        point = Path(_ESCAPED.sub(lambda found: chr(int(found[1], 8)), about.split(" ")[4]))
        if point == place or point in place.parents:
            depth = len(point.parts)
            if depth >= around[0]:  # what is mounted over another one is listed after it
                around = depth, system.split(" ")[0]
    kind = around[1]
    return kind if kind in _REMOTE or kind.startswith("fuse.") else ""
