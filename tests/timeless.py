"""Files that are the same whenever they are made, so that damage by a seed is the same, too."""

from __future__ import annotations

import io
import re
import zipfile

BITEXACT = {"fflags": "+bitexact"}
"""What FFmpeg writes a container with that has no random numbers."""
_TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


def timeless(package: bytes) -> bytes:
    """An archive, such as an Office file, without the time at which it was made."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(package)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            content = timeless(content) if name.endswith(".xlsx") else content
            content = _TIME.sub(b"2026-04-20T09:00:00", content)
            new.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()
