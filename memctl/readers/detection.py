"""What kind of file this is: by its content first, by its extension where that leaves it open."""

from __future__ import annotations

import codecs
import json
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from memctl.errors import EmptySource, EncryptedSource, UnreadableSource
from memctl.files import open_regular, read_regular
from memctl.readers.data_files.separated_values import guess_dialect
from memctl.readers.file_kinds import (
    FILE_KINDS,
    TRANSCRIPT,
    MediaType,
    kind_by_extension,
    supported_hint,
)
from memctl.readers.file_names import display_name
from memctl.readers.text_files.chat_logs import chat_style
from memctl.readers.text_files.decoding import (
    SAMPLE_BYTES,
    decode,
    encoding_by_mark,
    encoding_of_bytes,
    has_many_foreign,
    normalise_line_ends,
)
from memctl.readers.transcripts import LARGEST as LARGEST_TRANSCRIPT
from memctl.readers.transcripts import is_transcript

_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\b\x1b")) + b"\x7f"
_TEXT_CONTROLS = 0.02
"""Random bytes are one tenth control characters; text has next to none."""

_FEW_CONTROLS = 2
_DAMAGE = 0.005
"""The share of control characters that a long text may have where some bytes are no UTF-8."""

_LONGEST_CHARACTER = 4
"""Bytes in UTF-8."""


def detect_media_type(path: Path, name: str | None = None) -> MediaType:
    """The media type of the file at ``path``, whose name is ``name`` if not the path's own.

    Raises:
        EmptySource: It has no bytes, or nothing but blanks.
        UnreadableSource: It has nothing but zero bytes.
        EncryptedSource: It is an Office file under a password.
        UnreadableSource: It cannot be opened, or no reader knows its kind.
    """
    shown = display_name(name or path.name)
    head, complete = _head(path, shown)
    if complete and not head.strip(b" \t\r\n\v\f\0\xef\xbb\xbf\xff\xfe"):
        raise _nothing_in(shown, head)
    if media_type := _binary_type(path, name or path.name, head):
        return media_type
    sample = _text_of(head, complete)
    found = detect_text_type(sample, name or path.name, complete)
    if found == TRANSCRIPT and not complete and not _is_transcript_to_its_end(path):
        return detect_text_type(sample, name or path.name, complete, may_be_transcript=False)
    return found


def _is_transcript_to_its_end(path: Path) -> bool:
    """Return whether a file that begins as a transcript has nothing that would be lost as one."""
    try:
        if path.stat().st_size > LARGEST_TRANSCRIPT:
            return False
        return is_transcript(decode(read_regular(path)))
    except OSError:
        return False


def _nothing_in(shown: str, head: bytes) -> UnreadableSource:
    if b"\0" in head:  # as a power cut, or a copy that broke off, leaves it
        hint = "it is damaged; get it again from where it comes"
        return UnreadableSource(f"{shown} holds nothing but zero bytes", hint)
    return EmptySource(f"{shown} is empty", "put something into it and try again")


def _head(path: Path, shown: str) -> tuple[bytes, bool]:
    """The first bytes of the file, and whether they are all of it."""
    if path.is_dir():
        raise UnreadableSource(f"{shown} is a folder", "name a file, or ingest the folder's files")
    try:
        if not path.is_file():
            raise UnreadableSource(f"there is no file {shown}", "check the path")
        with open_regular(path) as file:
            head = file.read(SAMPLE_BYTES)
            return head, os.fstat(file.fileno()).st_size <= len(head)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UnreadableSource(f"cannot open {shown}: {reason}", "check its permissions") from error


def _binary_type(path: Path, name: str, head: bytes) -> MediaType:
    """The type of a binary file; ``""`` for text.

    Raises:
        UnreadableSource: It is neither text nor of a type that is known.
    """
    extension = kind_by_extension(name)
    claimed = extension.media_type if extension else ""
    if found := media_type_by_magic(head):
        return _refine(found, claimed)
    if head.startswith(b"PK\x03\x04") and (found := office_type(path)):
        return found
    if head.startswith(b"PK\x03\x04") and extension and extension.family != "text":
        return claimed  # a damaged file is no text; its reader says what is wrong with it
    if head.startswith(b"PK\x03\x04") and (found := office_type(path, is_whole=False)):
        return found
    if head[257:262] == _TAR:
        return "application/x-tar"
    if is_text(head) or _is_mail(head.decode("latin-1")):  # whatever a broken part of it has
        return ""
    if is_encrypted_office(head):
        raise EncryptedSource(
            f"{display_name(name)} is protected by a password", "save it without one and try again"
        )
    kind = unsupported_kind(head)
    if extension and extension.family != "text" and (not kind or head.startswith(b"PK")):
        return claimed
    if not head.strip(b"\0"):
        kind = _ZEROS
    raise UnreadableSource(
        f"{display_name(name)} cannot be read: it is "
        f"{kind or 'neither text nor of a binary format that is known'}",
        _CONVERSIONS.get(kind) or supported_hint(),
    )


def _refine(media_type: MediaType, claimed: MediaType) -> MediaType:
    """The extension's type where the signature alone cannot tell two types apart."""
    alike = (
        ("video/mp4", "audio/mp4", "video/quicktime"),
        ("video/x-matroska", "video/webm"),
        ("audio/mpeg", "audio/flac"),
    )
    same_family = any(media_type == group[0] and claimed in group for group in alike)
    return claimed if same_family else media_type


def is_text(head: bytes) -> bool:
    """Return whether the bytes look like text in some encoding."""
    if encoding := encoding_by_mark(head):
        return _is_printable(head, encoding)
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if controls == head.count(0) <= 0.1 * len(head) and head.isascii():
        return True
    if controls > max(_FEW_CONTROLS, _TEXT_CONTROLS * len(head)):
        return False
    return _is_utf8(head) or has_many_foreign(head) or _is_western(head)


def _is_utf8(head: bytes) -> bool:
    """Return whether the bytes are UTF-8, but for a character that is cut off at the end."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return not head or head[0] < 0x80 or len(head) >= _LONGEST_CHARACTER


def _is_western(head: bytes) -> bool:
    """Return whether text with few bytes outside ASCII can be one of a Western language.

    Of random bytes half are outside ASCII, and a quarter are symbols there.  A control character
    is damage in a long text, such as one broken message of a mail box, and tells against a short.
    """
    foreign = sum(byte >= 0x80 for byte in head)
    symbols = sum(0x80 <= byte < 0xC0 for byte in head)
    controls = len(head) - len(head.translate(None, _CONTROLS))
    is_clean = controls <= _DAMAGE * len(head)
    return is_clean and 3 * foreign <= len(head) and 6 * symbols <= len(head)


def _is_printable(head: bytes, encoding: str) -> bool:
    text = head.decode(encoding, "replace")[:4096].removeprefix("\ufeff")
    text = text.removesuffix("\ufffd")  # a character that is cut off
    bad = sum(1 for c in text if c == "\ufffd" or (c < " " and c not in "\t\n\v\f\r\b\x1b"))
    if not text or bad > min(2 + _TEXT_CONTROLS * len(text), len(text) / 6):
        return False
    return not encoding.startswith("utf-16") or _has_words(text)


_EAST_ASIAN = ("CJK", "HANGUL", "HIRAGANA", "KATAKANA", "IDEOGRAPHIC", "BOPOMOFO")
_CHARACTER_SETS = ("gb2312", "big5", "shift_jis", "euc_kr")
_ODD_LETTERS = 0.1
_LAST_LATIN = "\u024f"


def _has_words(text: str) -> bool:
    """Return whether a text may be of people, not random bytes of which all are characters.

    People write in one script, or several letters in each of some, and in East Asia with
    characters that one national standard has; next to none are private or unassigned.
    """
    odd = sum(unicodedata.category(c) in ("Cn", "Co", "Cs") for c in text)
    letters = [c for c in text if c > _LAST_LATIN and c.isalpha()]
    scripts = Counter(unicodedata.name(c, "").partition(" ")[0] for c in letters)
    asian = [c for c in letters if unicodedata.name(c, "").startswith(_EAST_ASIAN)]
    known = max(sum(_has_character(each, c) for c in asian) for each in _CHARACTER_SETS)
    known += sum(
        count
        for script, count in scripts.items()
        if script not in _EAST_ASIAN and count >= min(3, len(letters))
    )
    if len(text) == 1:
        return text <= _LAST_LATIN
    return odd + len(letters) - known <= _ODD_LETTERS * len(text)


def _has_character(character_set: str, character: str) -> bool:
    try:
        character.encode(character_set)
    except UnicodeEncodeError:
        return False
    return True


def _text_of(head: bytes, complete: bool) -> str:
    encoding = encoding_of_bytes(head if complete else head[:-8])
    return normalise_line_ends(head.decode(encoding, "replace").removeprefix("\ufeff"))


MAX_SAMPLE_LINES = 60

_HTML = re.compile(r"<!doctype\s+html|<html[\s>]", re.I)
_HTML_TAG = re.compile(
    r"</?(?:html|head|body|div|p|table|span|h[1-6]|article|ul|li|a)\b[^<]*>", re.I
)
_XML = re.compile(r"<\?xml\s|<!DOCTYPE\s|<!--|<[A-Za-z_][\w:.-]*[\s/>]")
_HEADER = re.compile(r"([A-Za-z][A-Za-z-]*):(?:\s|$)")
_MAIL_HEADERS = frozenset(
    ("from", "to", "cc", "subject", "date", "message-id", "received", "mime-version",
     "return-path", "delivered-to", "reply-to", "content-type", "in-reply-to", "sender")
)  # fmt: skip
_SRT = re.compile(r"\d+\n\d{1,2}:\d\d:\d\d[,.]\d{3} --> \d{1,2}:\d\d:\d\d[,.]\d{3}")
_MARKDOWN = re.compile(r"^(?:#{1,6} \S|```|\[\[.+\]\]|- \[[ x]\] |\*\*.+\*\*|> \S)", re.M)
_FRONT_MATTER = re.compile(r"---\n(?:[\w-]+:.*\n(?:[ \t-].*\n)*)+(?:---|\.\.\.)(?:\n|$)")
_YAML_KEY = re.compile(r"(?:[\w.-]+|\"[^\"\n]*\"):(?:\s|$)|- ")

_OPEN = ("text/plain", "text/x-log", "")
"""Types that say nothing of the format within: what is found inside goes first."""


_MAY_BE_TRANSCRIPTS = frozenset(
    ("application/json", "application/x-ndjson", "text/markdown", "text/plain", "")
)


def detect_text_type(
    sample: str, name: str, complete: bool, *, may_be_transcript: bool = True
) -> MediaType:
    """The media type of text that begins with ``sample`` (all of it if ``complete``)."""
    extension = kind_by_extension(name)
    claimed = extension.media_type if extension else ""
    text = sample.lstrip()
    checks: list[Callable[[], MediaType]] = [lambda: _type_by_signature(text)]
    if claimed == "application/json":
        checks.append(lambda: _json_type(text, complete) or _markup_type(text) or claimed)
    elif claimed in _OPEN or (extension and extension.family != "text"):
        checks += [
            lambda: _json_type(text, complete),
            lambda: _markup_type(text),
            lambda: _guess(text, sample, claimed),
        ]
    found = next((media_type for check in checks if (media_type := check())), claimed)
    if found == "application/json":
        found = _chat_export(text) or found
    if may_be_transcript and found in _MAY_BE_TRANSCRIPTS and is_transcript(sample, complete):
        found = TRANSCRIPT
    return found if found in FILE_KINDS and FILE_KINDS[found].family == "text" else "text/plain"


def _type_by_signature(text: str) -> MediaType:
    """Formats whose first line nothing else begins with, whatever the extension claims."""
    if re.match(r"WEBVTT(?:[ \t\n]|$)", text):
        return "text/vtt"
    if _SRT.match(text):
        return "application/x-subrip"
    if _HTML.match(text):
        return "text/html"
    if opening := re.match(r"BEGIN:(VCALENDAR|VCARD)[ \t]*(?:\n|$)", text, re.I):
        return "text/vcard" if opening[1].upper() == "VCARD" else "text/calendar"
    if text.startswith("<?xml"):
        return "text/html" if _HTML.search(text[:2000]) else "application/xml"
    return ""


def _json_type(text: str, complete: bool) -> MediaType:
    if not text.startswith(("{", "[")):
        return ""
    lines = [line for line in text.split("\n", MAX_SAMPLE_LINES)[:MAX_SAMPLE_LINES] if line.strip()]
    whole = lines if complete and len(lines) < MAX_SAMPLE_LINES else lines[:-1]
    if len(whole) >= 2 and all(_is_json_line(line) for line in whole[:-1]):
        return "application/x-ndjson"
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        cut_off = not complete and error.pos >= len(text) - 20
        unterminated = not complete and error.msg.startswith("Unterminated string")
        return "application/json" if cut_off or unterminated else ""
    except (ValueError, RecursionError):
        pass
    return "application/json"


_EXPORTS: tuple[tuple[MediaType, tuple[str, ...]], ...] = (
    ("application/x-chat-export", ('"mapping"', '"title"', '"create_time"', '"author"')),
    ("application/x-chat-export", ('"chat_messages"', '"uuid"', '"name"')),
    ("application/x-chat-export", ('"messages"', '"from_id"', '"date"', '"text"')),
    ("application/x-chat-export", ('"about": "Here is the data you requested', '"chats"')),
    ("application/x-slack-export", ('"ts":', '"type": "message"', '"user"', '"text"')),
)
"""What the beginning of an export of a chat program has, all of it."""


def _chat_export(text: str) -> MediaType:
    """Which export of conversations a JSON text is; ``""`` for any other."""
    spaced = re.sub(r'":\s*', '": ', text)
    return next((kind for kind, marks in _EXPORTS if all(mark in spaced for mark in marks)), "")


def _is_json_line(line: str) -> bool:
    if not line.lstrip().startswith(("{", "[")):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _markup_type(text: str) -> MediaType:
    if not _XML.match(text):
        return ""
    tags = _HTML_TAG.findall(text[:20_000])
    if len(tags) >= 2 and _HTML_TAG.match(re.sub(r"<!--.*?-->\s*", "", text, flags=re.S)):
        return "text/html"
    return "application/xml" if re.match(r"<[A-Za-z_!]", text) and "</" in text else ""


def _guess(text: str, sample: str, claimed: MediaType) -> MediaType:
    """Formats that only a look at many lines tells."""
    if _is_mail(sample):
        return "application/mbox" if sample.startswith("From ") else "message/rfc822"
    if text.startswith("#!"):
        return "text/x-source"
    if claimed == "text/x-log":
        return claimed
    if chat_style(sample) == "time":
        return "text/plain"
    if dialect := guess_dialect(sample, strict=True):
        return "text/tab-separated-values" if dialect.delimiter == "\t" else "text/csv"
    if claimed:
        return claimed
    if _FRONT_MATTER.match(sample):
        return "text/markdown"
    if text.startswith(("---\n", "%YAML")) and _mostly_yaml(text):
        return "application/yaml"
    return "text/markdown" if _MARKDOWN.search(text) else ""


def _is_mail(sample: str) -> bool:
    """Return whether the sample begins with a block of message headers, then a blank line."""
    names: Counter[str] = Counter()
    lines = sample.split("\n")
    for number, line in enumerate(lines):
        if not line.strip():
            break
        if line.startswith((" ", "\t")) or (number == 0 and line.startswith("From ")):
            continue
        match = _HEADER.match(line)
        if match is None:
            return False
        names[match[1].lower()] += 1
    known = _MAIL_HEADERS & names.keys()
    return len(known) >= 3 and "from" in known and bool(known & {"subject", "date"})


def _mostly_yaml(text: str) -> bool:
    lines = [line.strip() for line in text.split("\n")[1:MAX_SAMPLE_LINES]]
    lines = [line for line in lines if line and not line.startswith("#")]
    return bool(lines) and sum(bool(_YAML_KEY.match(line)) for line in lines) >= 0.7 * len(lines)


_DATABASE_LOG = "the log of an SQLite database, which is read with it"
_ZEROS = "a disk image or damaged, for it begins with thousands of zero bytes"
_OLD_OFFICE = "a file of an old Office format"
_UNSUPPORTED_SIGNATURES: tuple[tuple[bytes, str], ...] = (
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
    (b"PAR1", "a Parquet table"),
    (b"ARROW1", "an Arrow table"),
    (b"7\x7f\x06\x82", _DATABASE_LOG),
    (b"7\x7f\x06\x83", _DATABASE_LOG),
    (b"\xd9\xd5\x05\xf9 \xa1c\xd7", _DATABASE_LOG),
    (b"BM", "a bitmap image"),
    (b"8BPS", "a Photoshop image"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", _OLD_OFFICE),
    (b"PK", "a zip archive"),
)

_UNPACK = "unpack it, and ingest what is wanted of it"
_CONVERSIONS = {
    "a bzip2 archive": _UNPACK,
    "an xz archive": _UNPACK,
    "a zstd archive": _UNPACK,
    "a 7z archive": _UNPACK,
    "a rar archive": _UNPACK,
    "a Parquet table": "save it as CSV or JSON lines",
    "an Arrow table": "save it as CSV or JSON lines",
    "a bitmap image": "save it as PNG or JPEG",
    "a HEIF or AVIF image": "save it as PNG or JPEG",
    "a Photoshop image": "save it as PNG or JPEG",
    _ZEROS: "if it is to be a document, get it again from where it comes",
    "a zip archive": "give it the extension .zip to have the files in it read",
    _OLD_OFFICE: "save it as .docx, .xlsx or .pptx, or a message as .eml",
}
"""What makes a file of a kind that no reader knows one that is read."""

_TAR = b"ustar"
_QUICKTIME_ATOMS = (b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot")
_IMAGE_BRANDS = (b"heic", b"heix", b"heif", b"mif1", b"msf1", b"avif", b"avis", b"hevc")


def media_type_by_magic(head: bytes) -> MediaType:
    """The binary type that the first bytes are the signature of; ``""`` for none that is read."""
    for kind in FILE_KINDS.values():
        if kind.signatures and head.startswith(kind.signatures):
            return kind.media_type
    if head.startswith(b"RIFF"):
        return {b"WAVE": "audio/wav", b"WEBP": "image/webp"}.get(head[8:12], "")
    if head.startswith(b"\x1aE\xdf\xa3"):
        return "video/webm" if b"webm" in head[:128] else "video/x-matroska"
    found = _base_media(head) or ("audio/mpeg" if _mpeg_audio(head) else "")
    is_container = head[257:262] == _TAR or unsupported_kind(head)  # the PDF is one file of it
    return found if found or is_container else _late_pdf(head)


def _base_media(head: bytes) -> MediaType:
    """The ISO base media family: MP4, M4A, QuickTime."""
    if head[4:8] == b"ftyp":
        brand = head[8:12]
        if brand in _IMAGE_BRANDS:
            return ""
        if brand == b"qt  ":
            return "video/quicktime"
        return "audio/mp4" if brand[:3] in (b"M4A", b"M4B", b"M4P") else "video/mp4"
    size = int.from_bytes(head[:4], "big")
    old = head[4:8] in _QUICKTIME_ATOMS and (size >= 8 or size in (0, 1)) and b"\0" in head[:4]
    return "video/quicktime" if old else ""


def _mpeg_audio(head: bytes) -> bool:
    """Return whether a valid MPEG layer II or III frame header stands at the start."""
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return False
    version, layer = (head[1] >> 3) & 3, (head[1] >> 1) & 3
    bitrate, rate = head[2] >> 4, (head[2] >> 2) & 3
    return version != 1 and layer in (1, 2) and 0 < bitrate < 15 and rate != 3


def _late_pdf(head: bytes) -> MediaType:
    """PDF readers accept a signature anywhere in the first kilobyte, after junk.

    Text that speaks of it is text to its end, and mail may have a PDF attached as it is.
    """
    place = head[:1024].find(b"%PDF-")
    junk = head[:place].strip(b" \t\r\n\0\xef\xbb\xbf")
    if place <= 0:
        return ""
    if junk and is_text(junk):
        may_be_text = junk.isascii() or is_text(head) or _is_mail(head.decode("latin-1"))
        return "" if may_be_text else "application/pdf"
    return "application/pdf"


def unsupported_kind(head: bytes) -> str:
    """Name the kind of a file that no reader knows; ``""`` if its signature is unknown."""
    if head[4:8] == b"ftyp":
        return "a HEIF or AVIF image"
    return next((kind for start, kind in _UNSUPPORTED_SIGNATURES if head.startswith(start)), "")


_PACKAGE_PART = "[Content_Types].xml"
"""What every file of Office has; see ECMA-376, part 2."""
_PACKAGE_FOLDERS = ("_rels/", "docProps/", "customXml/")
"""What a file of Office may have beside the folder of its format."""


def office_type(path: Path, *, is_whole: bool = True) -> MediaType:
    """Which Office format a zip file is, by the names of its members; ``""`` for none.

    Args:
        path: The file.
        is_whole: It has what every file of Office must have.  Without that, it is one if all that
            it has is in the folders of a format.
    """
    import zipfile
    import zlib

    from memctl.readers.zip_directory import MAX_DIRECTORY_BYTES, directory_bytes

    try:
        if directory_bytes(path) > MAX_DIRECTORY_BYTES:
            return ""
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if "mimetype" in names:  # as EPUB and OpenDocument say what they are
                with archive.open("mimetype") as member:
                    said = member.read(100).decode("ascii", "replace").strip()
                kind = FILE_KINDS.get(said.removesuffix("-template"))
                if kind is not None and kind.family == "office":
                    return kind.media_type
    except (RuntimeError, zlib.error, EOFError, zipfile.BadZipFile, OSError, ValueError):
        return ""
    if is_whole and _PACKAGE_PART not in names:  # an archive that has a folder of such a name
        return ""
    for kind in FILE_KINDS.values():
        folder = kind.zip_folder
        if not folder or not any(name.startswith(folder) for name in names):
            continue
        if is_whole or all(name.startswith((folder, *_PACKAGE_FOLDERS)) for name in names):
            return kind.media_type
    return ""


def is_encrypted_office(head: bytes) -> bool:
    """Return whether this is the container that Office puts a password-protected file into."""
    return head.startswith(b"\xd0\xcf\x11\xe0") and "EncryptedPackage".encode("utf-16-le") in head
