"""The table of everything that can be read: media type, reader function, name, extensions, needs.

A reader is a function ``read(path, name) -> Iterator[SourceText]``, named here as
``package.module:function`` and imported only when a file of its kind comes along.  ``path`` is
where the bytes are; ``name`` is what the source is called (the path may be a claimed or temporary
one): titles and dates come from ``name``, sidecar files are looked for beside ``path``.
A reader raises only errors of the ``UnreadableSource`` family for what it finds inside a file.
The version in a reader's name goes up when the text it makes of the same bytes changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path, PurePath
from typing import cast

from memctl.errors import UnreadableSource
from memctl.records import SourceText

MediaType = str
ReadFunction = Callable[[Path, str], Iterator[SourceText]]


@dataclass(frozen=True, slots=True)
class FileKind:
    """One row of the table."""

    media_type: MediaType
    loader: str
    """``module:function``."""
    name: str
    """Name and version, stored with every document it reads."""
    extensions: tuple[str, ...]
    """Lower case, with the dot; the first is the usual one."""
    description: str
    needs: str = ""
    """What must be installed for it, as one would say it to a person; empty for nothing."""

    @property
    def is_apart(self) -> bool:
        """Whether it works in a process of its own: whatever is not plain lines of text."""
        return self.media_type not in _PLAIN

    def load(self) -> ReadFunction:
        """Import the module that the reader lives in and return its function."""
        module, _, function = self.loader.partition(":")
        return cast(ReadFunction, getattr(import_module(module), function))


_PLAIN = frozenset(
    {
        "text/plain", "text/x-log", "text/x-rst", "text/x-source", "text/markdown",
        "application/json", "application/x-ndjson", "text/csv", "text/tab-separated-values",
        "application/x-subrip", "text/vtt",
    }
)  # fmt: skip
"""Formats whose text is no longer than their bytes and whose readers go through them once."""

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

_OFFICE = "the office extra (pip install python-docx python-pptx openpyxl)"
_OCR = "the tesseract program or the ocr extra for the text in it"
_ENDPOINT = "a subtitle file beside it, or an endpoint that transcribes, for its words"

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

_TABLE = (
    FileKind(
        "text/plain",
        "memctl.readers.text_files.plain_text:read",
        "text/1",
        (".txt", ".text", ".asc", ".nfo"),
        "plain text and chat logs",
    ),
    FileKind(
        "text/x-log",
        "memctl.readers.text_files.plain_text:read_log",
        "log/1",
        (".log",),
        "log files",
    ),
    FileKind(
        "text/x-rst",
        "memctl.readers.text_files.plain_text:read_rst",
        "rst/1",
        (".rst", ".rest"),
        "reStructuredText",
    ),
    FileKind(
        "text/x-source",
        "memctl.readers.text_files.plain_text:read_code",
        "code/1",
        tuple(CODE_LANGUAGES),
        "source code and settings files",
    ),
    FileKind(
        "text/markdown",
        "memctl.readers.markup.markdown_files:read",
        "markdown/2",
        (".md", ".markdown", ".mdown", ".mkd", ".mdx"),
        "Markdown",
    ),
    FileKind(
        "application/json",
        "memctl.readers.data_files.structured_data:read_json",
        "json/2",
        (".json", ".geojson", ".ipynb", ".webmanifest"),
        "JSON",
    ),
    FileKind(
        "application/x-ndjson",
        "memctl.readers.data_files.structured_data:read_jsonl",
        "jsonl/2",
        (".jsonl", ".ndjson", ".jsonlines"),
        "JSON lines",
    ),
    FileKind(
        "application/yaml",
        "memctl.readers.data_files.structured_data:read_yaml",
        "yaml/2",
        (".yaml", ".yml"),
        "YAML",
    ),
    FileKind(
        "text/csv",
        "memctl.readers.data_files.table_rows:read_csv",
        "csv/1",
        (".csv",),
        "comma-separated tables",
    ),
    FileKind(
        "text/tab-separated-values",
        "memctl.readers.data_files.table_rows:read_tsv",
        "tsv/1",
        (".tsv", ".tab"),
        "tab-separated tables",
    ),
    FileKind(
        "application/xml",
        "memctl.readers.markup.xml_files:read",
        "xml/1",
        (".xml", ".rss", ".atom", ".opml", ".svg", ".xsd", ".xsl", ".plist"),
        "XML",
    ),
    FileKind(
        "text/html",
        "memctl.readers.markup.web_pages:read",
        "html/1",
        (".html", ".htm", ".xhtml"),
        "web pages",
    ),
    FileKind(
        "message/rfc822",
        "memctl.readers.email_messages:read",
        "email/1",
        (".eml",),
        "e-mail messages",
    ),
    FileKind(
        "application/x-subrip",
        "memctl.readers.media.subtitles:read",
        "subtitles/1",
        (".srt",),
        "subtitles",
    ),
    FileKind(
        "text/vtt", "memctl.readers.media.subtitles:read", "subtitles/1", (".vtt",), "subtitles"
    ),
    FileKind("application/pdf", "memctl.readers.pdf.pdf_documents:read", "pdf/2", (".pdf",), "PDF"),
    FileKind(
        DOCX,
        "memctl.readers.office.office_files:read_docx",
        "docx/1",
        (".docx",),
        "Word documents",
        _OFFICE,
    ),
    FileKind(
        PPTX,
        "memctl.readers.office.office_files:read_pptx",
        "pptx/1",
        (".pptx",),
        "PowerPoint slides",
        _OFFICE,
    ),
    FileKind(
        XLSX,
        "memctl.readers.office.office_files:read_xlsx",
        "xlsx/1",
        (".xlsx",),
        "Excel tables",
        _OFFICE,
    ),
    FileKind("image/png", "memctl.readers.media.images:read", "image/1", (".png",), "images", _OCR),
    FileKind(
        "image/jpeg",
        "memctl.readers.media.images:read",
        "image/1",
        (".jpg", ".jpeg"),
        "images",
        _OCR,
    ),
    FileKind("image/gif", "memctl.readers.media.images:read", "image/1", (".gif",), "images", _OCR),
    FileKind(
        "image/webp", "memctl.readers.media.images:read", "image/1", (".webp",), "images", _OCR
    ),
    FileKind(
        "image/tiff",
        "memctl.readers.media.images:read",
        "image/1",
        (".tiff", ".tif"),
        "images",
        _OCR,
    ),
    FileKind(
        "audio/mpeg",
        "memctl.readers.media.recordings:read",
        "media/2",
        (".mp3",),
        "sound",
        _ENDPOINT,
    ),
    FileKind(
        "audio/wav",
        "memctl.readers.media.recordings:read",
        "media/2",
        (".wav",),
        "sound",
        _ENDPOINT,
    ),
    FileKind(
        "audio/flac",
        "memctl.readers.media.recordings:read",
        "media/2",
        (".flac",),
        "sound",
        _ENDPOINT,
    ),
    FileKind(
        "audio/ogg",
        "memctl.readers.media.recordings:read",
        "media/2",
        (".ogg", ".oga", ".opus"),
        "sound",
        _ENDPOINT,
    ),
    FileKind(
        "audio/mp4",
        "memctl.readers.media.recordings:read",
        "media/2",
        (".m4a", ".m4b"),
        "sound",
        _ENDPOINT,
    ),
    FileKind(
        "video/mp4",
        "memctl.readers.media.recordings:read",
        "media/2",
        (".mp4", ".m4v"),
        "video",
        _ENDPOINT,
    ),
    FileKind(
        "video/x-matroska",
        "memctl.readers.media.recordings:read",
        "media/2",
        (".mkv", ".mka"),
        "video",
        _ENDPOINT,
    ),
    FileKind(
        "video/quicktime",
        "memctl.readers.media.recordings:read",
        "media/2",
        (".mov",),
        "video",
        _ENDPOINT,
    ),
    FileKind(
        "video/webm",
        "memctl.readers.media.recordings:read",
        "media/2",
        (".webm",),
        "video",
        _ENDPOINT,
    ),
)
FILE_KINDS: Mapping[MediaType, FileKind] = {reader.media_type: reader for reader in _TABLE}

_BY_EXTENSION: Mapping[str, FileKind] = {
    extension: reader for reader in FILE_KINDS.values() for extension in reader.extensions
}


def extension_of(name: str) -> str:
    """Lower-case extension of a name, with its dot; ``""`` when it has none."""
    return PurePath(name).suffix.lower()


def kind_by_extension(name: str) -> FileKind | None:
    """The reader that a name's extension speaks for, if any."""
    return _BY_EXTENSION.get(extension_of(name))


def kind_of_media_type(media_type: MediaType) -> FileKind:
    """The reader of a media type.

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
        "readable are text, Markdown, code, data, tables, web pages, mail, office, PDF, images,"
        " recordings and subtitles"
    )
