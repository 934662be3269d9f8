"""Everything that can be read: one entry for each kind of file.

A new format is one entry here and one module with a reader, a function ``read(path, name) ->
Iterator[SourceText]``, named as ``package.module:function`` and imported only when a file of its
kind comes along.  ``path`` is where the bytes are; ``name`` is what the source is called, since the
path may be a claimed or temporary one: titles and dates come from ``name``, sidecar files are
looked for beside ``path``.  For what it finds inside a file a reader raises only errors of the
``UnreadableSource`` family.  Its version goes up when the text it makes of the same bytes changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path, PurePath
from typing import Literal, cast

from msgspec import Struct

from memctl.errors import UnreadableSource
from memctl.records import SourceText

MediaType = str
ReadFunction = Callable[[Path, str], Iterator[SourceText]]
Family = Literal["text", "office", "pdf", "image", "audio", "video", "archive"]


class FileKind(Struct, frozen=True):
    """A kind of file, how it is recognised, and who reads it."""

    family: Family
    """All that is text in some encoding, tables and mail included, is one family."""
    media_type: MediaType
    loader: str
    """``module:function``, the module without ``memctl.readers``."""
    name: str
    """Name and version of the reader, stored with every document it reads."""
    suffixes: str
    """Lower case, with the dot, separated by blanks; the first is the usual one."""
    description: str
    signatures: tuple[bytes, ...] = ()
    """What files of this kind, and of no other, begin with."""
    zip_folder: str = ""
    """The folder that a zip archive of this kind, and of no other, has."""
    is_isolated: bool = True
    """Whether it is read in a process of its own: whatever is not plain lines of text.

    Other text is no longer than its bytes, and its reader goes through it once.
    """
    sidecars: tuple[str, ...] = ()
    """Suffixes of files beside it that belong to it."""
    container: str = ""
    """FFmpeg's name of the format that holds its pictures and sound."""
    upload_suffix: str = ""
    """The suffix by which servers know it, where they take it as it is."""
    units: str = ""
    """What it holds many of, each a document of its own; empty for a file that is one document."""

    @property
    def extensions(self) -> tuple[str, ...]:
        """Its suffixes."""
        return tuple(self.suffixes.split())

    def load(self) -> ReadFunction:
        """Import the module that the reader lives in and return its function."""
        module, _, function = self.loader.partition(":")
        return cast(ReadFunction, getattr(import_module(f"memctl.readers.{module}"), function))


DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
EPUB = "application/epub+zip"
ODT = "application/vnd.oasis.opendocument.text"
TRANSCRIPT = "application/x-agent-transcript"
SQLITE, DATABASE_START = "application/vnd.sqlite3", b"SQLite format 3\0"
ODS = "application/vnd.oasis.opendocument.spreadsheet"

CODE_LANGUAGES: Mapping[str, str] = {
    ".py": "python", ".pyi": "python", ".js": "javascript", ".mjs": "javascript",
    ".cjs": "javascript", ".jsx": "javascript", ".ts": "typescript", ".tsx": "typescript",
    ".java": "java", ".kt": "kotlin", ".kts": "kotlin", ".scala": "scala", ".groovy": "groovy",
    ".c": "c", ".h": "c", ".cc": "c++", ".cpp": "c++", ".cxx": "c++", ".hpp": "c++", ".hh": "c++",
    ".cs": "c#", ".fs": "f#", ".vb": "visual basic", ".m": "objective-c", ".mm": "objective-c",
    ".swift": "swift", ".go": "go", ".rs": "rust", ".zig": "zig", ".d": "d", ".nim": "nim",
    ".rb": "ruby", ".php": "php", ".pl": "perl", ".pm": "perl", ".lua": "lua", ".r": "r",
    ".jl": "julia", ".hs": "haskell", ".ml": "ocaml", ".ex": "elixir", ".exs": "elixir",
    ".erl": "erlang", ".clj": "clojure", ".lisp": "lisp", ".el": "lisp", ".scm": "scheme",
    ".sh": "shell", ".bash": "shell", ".zsh": "shell", ".fish": "shell", ".ps1": "powershell",
    ".bat": "batch", ".cmd": "batch", ".sql": "sql", ".graphql": "graphql", ".proto": "protobuf",
    ".css": "css", ".scss": "css", ".less": "css", ".vue": "vue", ".svelte": "svelte",
    ".tf": "terraform", ".cmake": "cmake", ".mk": "make", ".gradle": "gradle", ".dart": "dart",
    ".toml": "toml", ".ini": "ini", ".cfg": "ini", ".conf": "conf", ".properties": "properties",
    ".tex": "tex", ".bib": "bibtex", ".diff": "diff", ".patch": "diff",
}  # fmt: skip

_TEXT, _DATA = "text_files.plain_text", "data_files.structured_data"
_HEADED = "text_files.headed_text"
_OPEN_DOCUMENTS = "office.open_documents"
_TABLES, _SUBTITLES = "data_files.table_rows", "media.subtitles:read"
_IMAGES, _RECORDINGS = ("media.images:read", "image/1"), ("media.recordings:read", "media/2")
_plain = partial(FileKind, "text", is_isolated=False)
_text = partial(FileKind, "text")
_ARCHIVES = ("archives:read", "archive/1")
_archive = partial(FileKind, "archive", units="files")
_office = partial(FileKind, "office")
_image = partial(FileKind, "image")
_recording = partial(FileKind, sidecars=(".srt", ".vtt"))
_audio, _video = partial(_recording, "audio"), partial(_recording, "video")

# Media type, reader, its name and version, suffixes, description; signatures and the rest.
_TABLE: tuple[FileKind, ...] = (
    _plain("text/plain", f"{_TEXT}:read", "text/1",
             ".txt .text .asc .nfo", "plain text and chat logs"),
    _plain("text/x-log", f"{_TEXT}:read_log", "log/1", ".log", "log files"),
    _plain("text/x-rst", f"{_HEADED}:read_rst", "rst/1",
             ".rst .rest", "reStructuredText"),
    _plain("text/asciidoc", f"{_HEADED}:read_asciidoc", "asciidoc/1",
             ".adoc .asciidoc", "AsciiDoc"),
    _plain("text/org", f"{_HEADED}:read_org", "org/2",
             ".org", "notes of Org mode"),
    _plain("text/x-source", f"{_TEXT}:read_code", "code/1",
             " ".join(CODE_LANGUAGES), "source code and settings files"),
    _plain("text/markdown", "markup.markdown_files:read", "markdown/2",
             ".md .markdown .mdown .mkd .mdx", "Markdown"),
    _plain("application/json", f"{_DATA}:read_json", "json/2",
             ".json .geojson .webmanifest", "JSON"),
    _text("application/x-ipynb+json", "markup.notebooks:read", "notebook/1",
             ".ipynb", "Jupyter notebooks"),
    _plain("application/x-ndjson", f"{_DATA}:read_jsonl", "jsonl/2",
             ".jsonl .ndjson .jsonlines", "JSON lines"),
    _text("application/yaml", f"{_DATA}:read_yaml", "yaml/2", ".yaml .yml", "YAML"),
    _plain("text/csv", f"{_TABLES}:read_csv", "csv/1",
             ".csv", "comma-separated tables"),
    _plain("text/tab-separated-values", f"{_TABLES}:read_tsv", "tsv/1",
             ".tsv .tab", "tab-separated tables"),
    _text("application/xml", "markup.xml_files:read", "xml/1",
             ".xml .rss .atom .opml .svg .xsd .xsl .plist", "XML"),
    _text("text/html", "markup.web_pages:read", "html/1",
             ".html .htm .xhtml", "web pages"),
    _text("message/rfc822", "email_messages:read", "email/3",
             ".eml", "e-mail messages"),
    _text("application/mbox", "email_messages:read_box", "mbox/2",
             ".mbox .mbx", "mail boxes", units="messages"),
    _text("application/x-chat-export", "chat_exports:read", "chats/1",
             "", "exports of ChatGPT, Claude and Telegram", units="conversations"),
    _text("application/x-slack-export", "chat_exports:read_slack", "slack/1",
             "", "days of Slack channels"),
    _text(TRANSCRIPT, "chat_exports:read_agent", "transcript/2",
             "", "transcripts of agents"),
    _text("text/calendar", "calendars:read", "calendar/3",
             ".ics .ical .ifb .icalendar", "calendars", units="events"),
    _text("text/vcard", "contacts:read", "contacts/1",
             ".vcf .vcard", "contacts", units="contacts"),
    _plain("application/x-subrip", _SUBTITLES, "subtitles/1",
             ".srt", "subtitles"),
    _plain("text/vtt", _SUBTITLES, "subtitles/1", ".vtt", "subtitles"),
    _archive("application/zip", *_ARCHIVES, ".zip", "archives"),
    _archive("application/x-tar", *_ARCHIVES, ".tar", "archives"),
    _archive("application/gzip", *_ARCHIVES, ".gz .tgz", "archives", (b"\x1f\x8b",)),
    FileKind("pdf", "application/pdf", "pdf.pdf_documents:read", "pdf/3",
             ".pdf", "PDF", (b"%PDF-",)),
    _office(DOCX, "office.word_documents:read", "docx/1",
             ".docx", "Word documents", zip_folder="word/"),
    _office(PPTX, "office.presentations:read", "pptx/1",
             ".pptx", "PowerPoint slides", zip_folder="ppt/"),
    _office(XLSX, "office.spreadsheets:read", "xlsx/1",
             ".xlsx", "Excel tables", zip_folder="xl/"),
    FileKind("office", EPUB, f"{_OPEN_DOCUMENTS}:read_book", "epub/1", ".epub", "books"),
    FileKind("office", ODT, f"{_OPEN_DOCUMENTS}:read_text", "odt/1",
             ".odt .ott", "OpenDocument texts"),
    FileKind("office", ODS, f"{_OPEN_DOCUMENTS}:read_sheets", "ods/1",
             ".ods .ots", "OpenDocument sheets"),
    FileKind("office", "application/rtf", "text_files.plain_text:read_rich_text", "rtf/1",
             ".rtf", "rich text", (b"{\\rtf",)),
    FileKind("office", SQLITE, "data_files.sqlite_files:read", "sqlite/1",
             ".sqlite .sqlite3 .db", "SQLite databases", (DATABASE_START,)),
    _image("image/png", *_IMAGES, ".png", "images", (b"\x89PNG\r\n\x1a\n",)),
    _image("image/jpeg", *_IMAGES, ".jpg .jpeg", "images", (b"\xff\xd8\xff",)),
    _image("image/gif", *_IMAGES, ".gif", "images", (b"GIF87a", b"GIF89a")),
    _image("image/webp", *_IMAGES, ".webp", "images"),
    _image("image/tiff", *_IMAGES, ".tiff .tif", "images",
             (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")),
    _audio("audio/mpeg", *_RECORDINGS, ".mp3", "sound", (b"ID3",),
             upload_suffix="mp3"),
    _audio("audio/wav", *_RECORDINGS, ".wav", "sound", upload_suffix="wav"),
    _audio("audio/flac", *_RECORDINGS, ".flac", "sound", (b"fLaC",),
             upload_suffix="flac"),
    _audio("audio/ogg", *_RECORDINGS, ".ogg .oga .opus", "sound", (b"OggS",),
             upload_suffix="ogg"),
    _audio("audio/mp4", *_RECORDINGS, ".m4a .m4b", "sound",
             container="mp4", upload_suffix="m4a"),
    _video("video/mp4", *_RECORDINGS, ".mp4 .m4v", "video",
             container="mp4", upload_suffix="mp4"),
    _video("video/x-matroska", *_RECORDINGS, ".mkv .mka", "video",
             container="matroska"),
    _video("video/quicktime", *_RECORDINGS, ".mov", "video",
             container="mp4"),
    _video("video/webm", *_RECORDINGS, ".webm", "video",
             container="matroska", upload_suffix="webm"),
)  # fmt: skip
FILE_KINDS: Mapping[MediaType, FileKind] = {kind.media_type: kind for kind in _TABLE}
UNIT_NAMES = tuple(dict.fromkeys(kind.units for kind in _TABLE if kind.units))
"""What the units of files of many are called, in the plural."""

_BY_EXTENSION: Mapping[str, FileKind] = {
    extension: kind for kind in _TABLE for extension in kind.extensions
}


def extension_of(name: str) -> str:
    """Lower-case extension of a name, with its dot; ``""`` when it has none."""
    return PurePath(name).suffix.lower()


def kind_by_extension(name: str) -> FileKind | None:
    """The kind of file that a name's extension speaks for, if any."""
    return _BY_EXTENSION.get(extension_of(name))


DATABASE_LOGS = ("-wal", "-journal", "-shm")
"""What follows the name of an SQLite database in the names of its logs and of their index."""


def by_database(files: Iterable[Path]) -> dict[Path, tuple[Path, ...]]:
    """Which logs belong to which SQLite database, among the files of one folder."""
    names = {path.name: path for path in files}
    found: dict[Path, tuple[Path, ...]] = {}
    for name, path in names.items():
        kind = kind_by_extension(name)
        if kind is not None and kind.media_type == SQLITE:
            logs = [names[log] for end in DATABASE_LOGS if (log := f"{name}{end}") in names]
            found |= {path: tuple(logs)} if logs else {}
    return found


def database_logs(path: Path) -> list[Path]:
    """The logs beside an SQLite database that hold changes which it does not have yet."""
    beside = [path.with_name(f"{path.name}{end}") for end in DATABASE_LOGS if end != "-shm"]
    return [log for log in beside if log.is_file() and log.stat().st_size]


def kind_of_media_type(media_type: MediaType) -> FileKind:
    """The kind of file that has a media type.

    Raises:
        UnreadableSource: Nothing here reads that type.
    """
    try:
        return FILE_KINDS[media_type]
    except KeyError:
        raise UnreadableSource(f"cannot read {media_type}", supported_hint()) from None


def supported_hint() -> str:
    """One line that lists the kinds of file that can be read."""
    return (
        "readable are text, code, data, tables, web pages, mail, calendars, contacts, office, PDF,"
        " images, recordings and archives"
    )
