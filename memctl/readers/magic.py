"""What the first bytes of a file say it is; knows nothing of text formats."""

from __future__ import annotations

from pathlib import Path

from memctl.readers.registry import DOCX, PPTX, XLSX, MediaType

_STARTS: tuple[tuple[bytes, MediaType], ...] = (
    (b"%PDF-", "application/pdf"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"II+\0", "image/tiff"),
    (b"MM\0+", "image/tiff"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
)

_UNREAD: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\0", "an xz archive"),
    (b"(\xb5/\xfd", "a zstd archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a rar archive"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a Windows program"),
    (b"\xcf\xfa\xed\xfe", "a program"),
    (b"\xca\xfe\xba\xbe", "a program"),
    (b"\0asm", "a program"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"PAR1", "a Parquet table"),
    (b"ARROW1", "an Arrow table"),
    (b"BM", "a bitmap image"),
    (b"8BPS", "a Photoshop image"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a file of an old Office format"),
    (b"{\\rtf", "an RTF document"),
    (b"PK", "a zip archive"),
)

_QUICKTIME_ATOMS = (b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot")
_STILL_BRANDS = (b"heic", b"heix", b"heif", b"mif1", b"msf1", b"avif", b"avis", b"hevc")
_OFFICE_FOLDERS = (("word/", DOCX), ("ppt/", PPTX), ("xl/", XLSX))


def media_type_by_magic(head: bytes) -> MediaType:
    """The binary type that the first bytes are the signature of; ``""`` for none that is read."""
    for start, media_type in _STARTS:
        if head.startswith(start):
            return media_type
    if head.startswith(b"RIFF"):
        return {b"WAVE": "audio/wav", b"WEBP": "image/webp"}.get(head[8:12], "")
    if head.startswith(b"\x1aE\xdf\xa3"):
        return "video/webm" if b"webm" in head[:128] else "video/x-matroska"
    if head.startswith(b"ID3"):
        return "audio/mpeg"
    return _base_media(head) or ("audio/mpeg" if _mpeg_audio(head) else "") or _late_pdf(head)


def _base_media(head: bytes) -> MediaType:
    """The ISO base media family: MP4, M4A, QuickTime."""
    if head[4:8] == b"ftyp":
        brand = head[8:12]
        if brand in _STILL_BRANDS:
            return ""
        if brand == b"qt  ":
            return "video/quicktime"
        return "audio/mp4" if brand[:3] in (b"M4A", b"M4B", b"M4P") else "video/mp4"
    size = int.from_bytes(head[:4], "big")
    old = head[4:8] in _QUICKTIME_ATOMS and (size >= 8 or size in (0, 1)) and b"\0" in head[:4]
    return "video/quicktime" if old else ""


def _mpeg_audio(head: bytes) -> bool:
    """Whether a valid MPEG layer II or III frame header stands at the start."""
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return False
    version, layer = (head[1] >> 3) & 3, (head[1] >> 1) & 3
    bitrate, rate = head[2] >> 4, (head[2] >> 2) & 3
    return version != 1 and layer in (1, 2) and 0 < bitrate < 15 and rate != 3


def _late_pdf(head: bytes) -> MediaType:
    """PDF readers accept a signature anywhere in the first kilobyte, after junk."""
    place = head[:1024].find(b"%PDF-")
    junk = head[:place].strip(b" \t\r\n\0\xef\xbb\xbf")
    return "application/pdf" if place > 0 and (not junk or not junk.isascii()) else ""


def unread_kind(head: bytes) -> str:
    """What a file that nobody here reads is, in words; ``""`` when its signature is unknown."""
    if head[4:8] == b"ftyp":
        return "a HEIF or AVIF image"
    return next((kind for start, kind in _UNREAD if head.startswith(start)), "")


def office_type(path: Path) -> MediaType:
    """Which Office format a zip file is, by the names of its members; ``""`` for none."""
    import zipfile

    from memctl.store.zip_end import MOST_LISTING, listing_bytes

    try:
        if listing_bytes(path) > MOST_LISTING:
            return ""
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return ""
    for folder, media_type in _OFFICE_FOLDERS:
        if any(name.startswith(folder) for name in names):
            return media_type
    return ""


def is_encrypted_office(head: bytes) -> bool:
    """Whether this is the container that Office puts a password-protected file into."""
    return head.startswith(b"\xd0\xcf\x11\xe0") and "EncryptedPackage".encode("utf-16-le") in head
