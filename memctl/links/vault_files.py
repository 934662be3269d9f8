"""The files of an exported vault: their names, their front matter, and the seal they are known by.

The seal is a hash of the rest of the file.  A file with a seal that fits is as it was written; one
that was edited belongs to the user.  Knows nothing of documents or tables.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from memctl.paths import is_device_name

NOTE_ENDING = ".md"
FIRST_BYTES = b"---\nid: "
"""How every file of a vault begins."""
INDEX_ID = "index"
"""The id of the index of a vault, which is of no document."""
_KB, _SEAL = "memctl", "memctl_sha256"
_SEAL_LINE = re.compile(rb"^memctl_sha256: ([0-9a-f]{64})\n", re.MULTILINE)
_ID_LINE = re.compile(rb"^id: (\S+)\n", re.MULTILINE)
_KB_LINE = re.compile(rb"^memctl: (\S+)\n", re.MULTILINE)
_FRONT_MATTER = 64 << 10
"""The seal is within this many bytes, or missing."""
_UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f<>:"/\\|?*#^\[\]\u200e\u200f\u2028-\u202e\u2066-\u2069]+')
_LONGEST_NAME = 120
"""Bytes; with a suffix and an ending there is room in the 255 of a file system."""


class Seal(Struct, frozen=True):
    """What a file of a vault says of itself."""

    id: str
    """Of the document or the insight that it was written of."""
    kb: str
    is_intact: bool
    """Whether it is as it was written."""


def seal_file(front: Mapping[str, Any], body: str, id_: str, kb: str) -> bytes:
    """Return a file with front matter, the id of what it is written of, and a seal.

    Args:
        front: Further front matter.
        body: The text below it.
        id_: The id.
        kb: The knowledge base.
    """
    import yaml

    values = {key: value for key, value in front.items() if value not in (None, "", [], {})}
    dumped = yaml.safe_dump(values, allow_unicode=True, sort_keys=False, width=1_000_000)
    text = f"---\nid: {id_}\n{_KB}: {kb}\n{dumped if values else ''}"
    head, rest = text.encode("utf-8", "replace"), f"---\n\n{body}".encode("utf-8", "replace")
    digest = hashlib.sha256(head + rest).hexdigest()
    return head + f"{_SEAL}: {digest}\n".encode() + rest


def seal_of(content: bytes) -> Seal | None:
    """Return the seal of a file; None where it has none."""
    head = content[:_FRONT_MATTER]
    seal = _SEAL_LINE.search(head)
    if seal is None or not head.startswith(FIRST_BYTES):
        return None
    id_, kb = _ID_LINE.search(head), _KB_LINE.search(head)
    if id_ is None or kb is None:
        return None
    rest = content[: seal.start()] + content[seal.end() :]
    is_intact = hashlib.sha256(rest).hexdigest().encode() == seal[1]
    return Seal(id_[1].decode("utf-8", "replace"), kb[1].decode("utf-8", "replace"), is_intact)


def safe_name(title: str) -> str:
    """Return a title as a file may be called on every system, without ending, never empty."""
    name = " ".join(_UNSAFE.sub(" ", unicodedata.normalize("NFC", title)).split())
    name = name.encode("utf-8", "ignore")[:_LONGEST_NAME].decode("utf-8", "ignore")
    name = name.strip(" .")
    return f"{name}_" if is_device_name(name) else name or "Untitled"


def name_key(name: str) -> str:
    """Return what names are compared by: file systems may know neither case nor composition."""
    return unicodedata.normalize("NFKC", name).casefold()
