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
class Reader:
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

_OFFICE = "the office extra (pip install 'memctl[office]')"
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
    Reader(
        "text/plain",
        "memctl.readers.text:read",
        "text/1",
        (".txt", ".text", ".asc", ".nfo"),
        "plain text and chat logs",
    ),
    Reader("text/x-log", "memctl.readers.text:read_log", "log/1", (".log",), "log files"),
    Reader(
        "text/x-rst", "memctl.readers.text:read_rst", "rst/1", (".rst", ".rest"), "reStructuredText"
    ),
    Reader(
        "text/x-source",
        "memctl.readers.text:read_code",
        "code/1",
        tuple(CODE_LANGUAGES),
        "source code and settings files",
    ),
    Reader(
        "text/markdown",
        "memctl.readers.markdown:read",
        "markdown/2",
        (".md", ".markdown", ".mdown", ".mkd", ".mdx"),
        "Markdown",
    ),
    Reader(
        "application/json",
        "memctl.readers.structured:read_json",
        "json/2",
        (".json", ".geojson", ".ipynb", ".webmanifest"),
        "JSON",
    ),
    Reader(
        "application/x-ndjson",
        "memctl.readers.structured:read_jsonl",
        "jsonl/2",
        (".jsonl", ".ndjson", ".jsonlines"),
        "JSON lines",
    ),
    Reader(
        "application/yaml",
        "memctl.readers.structured:read_yaml",
        "yaml/2",
        (".yaml", ".yml"),
        "YAML",
    ),
    Reader(
        "text/csv", "memctl.readers.tables:read_csv", "csv/1", (".csv",), "comma-separated tables"
    ),
    Reader(
        "text/tab-separated-values",
        "memctl.readers.tables:read_tsv",
        "tsv/1",
        (".tsv", ".tab"),
        "tab-separated tables",
    ),
    Reader(
        "application/xml",
        "memctl.readers.markup:read",
        "xml/1",
        (".xml", ".rss", ".atom", ".opml", ".svg", ".xsd", ".xsl", ".plist"),
        "XML",
    ),
    Reader(
        "text/html", "memctl.readers.web:read", "html/1", (".html", ".htm", ".xhtml"), "web pages"
    ),
    Reader("message/rfc822", "memctl.readers.mail:read", "email/1", (".eml",), "e-mail messages"),
    Reader(
        "application/x-subrip",
        "memctl.readers.subtitles:read",
        "subtitles/1",
        (".srt",),
        "subtitles",
    ),
    Reader("text/vtt", "memctl.readers.subtitles:read", "subtitles/1", (".vtt",), "subtitles"),
    Reader("application/pdf", "memctl.readers.pdf:read", "pdf/2", (".pdf",), "PDF"),
    Reader(
        DOCX, "memctl.readers.office:read_docx", "docx/1", (".docx",), "Word documents", _OFFICE
    ),
    Reader(
        PPTX, "memctl.readers.office:read_pptx", "pptx/1", (".pptx",), "PowerPoint slides", _OFFICE
    ),
    Reader(XLSX, "memctl.readers.office:read_xlsx", "xlsx/1", (".xlsx",), "Excel tables", _OFFICE),
    Reader("image/png", "memctl.readers.image:read", "image/1", (".png",), "images", _OCR),
    Reader("image/jpeg", "memctl.readers.image:read", "image/1", (".jpg", ".jpeg"), "images", _OCR),
    Reader("image/gif", "memctl.readers.image:read", "image/1", (".gif",), "images", _OCR),
    Reader("image/webp", "memctl.readers.image:read", "image/1", (".webp",), "images", _OCR),
    Reader("image/tiff", "memctl.readers.image:read", "image/1", (".tiff", ".tif"), "images", _OCR),
    Reader("audio/mpeg", "memctl.readers.media:read", "media/2", (".mp3",), "sound", _ENDPOINT),
    Reader("audio/wav", "memctl.readers.media:read", "media/2", (".wav",), "sound", _ENDPOINT),
    Reader("audio/flac", "memctl.readers.media:read", "media/2", (".flac",), "sound", _ENDPOINT),
    Reader(
        "audio/ogg",
        "memctl.readers.media:read",
        "media/2",
        (".ogg", ".oga", ".opus"),
        "sound",
        _ENDPOINT,
    ),
    Reader(
        "audio/mp4", "memctl.readers.media:read", "media/2", (".m4a", ".m4b"), "sound", _ENDPOINT
    ),
    Reader(
        "video/mp4", "memctl.readers.media:read", "media/2", (".mp4", ".m4v"), "video", _ENDPOINT
    ),
    Reader(
        "video/x-matroska",
        "memctl.readers.media:read",
        "media/2",
        (".mkv", ".mka"),
        "video",
        _ENDPOINT,
    ),
    Reader(
        "video/quicktime", "memctl.readers.media:read", "media/2", (".mov",), "video", _ENDPOINT
    ),
    Reader("video/webm", "memctl.readers.media:read", "media/2", (".webm",), "video", _ENDPOINT),
)
READERS: Mapping[MediaType, Reader] = {reader.media_type: reader for reader in _TABLE}

_BY_EXTENSION: Mapping[str, Reader] = {
    extension: reader for reader in READERS.values() for extension in reader.extensions
}


def extension_of(name: str) -> str:
    """Lower-case extension of a name, with its dot; ``""`` when it has none."""
    return PurePath(name).suffix.lower()


def by_extension(name: str) -> Reader | None:
    """The reader that a name's extension speaks for, if any."""
    return _BY_EXTENSION.get(extension_of(name))


def reader_for(media_type: MediaType) -> Reader:
    """The reader of a media type.

    Raises:
        UnreadableSource: Nothing here reads that type.
    """
    try:
        return READERS[media_type]
    except KeyError:
        raise UnreadableSource(f"cannot read {media_type}", supported_hint()) from None


def supported_hint() -> str:
    """One line that lists the kinds of file that can be read."""
    return (
        "readable are text, Markdown, code, data, tables, web pages, mail, office, PDF, images,"
        " recordings and subtitles"
    )
