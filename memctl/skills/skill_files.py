"""Skills as files: SKILL.md folders and plain Markdown, read verbatim and written out again.

The format is that of https://agentskills.io: front matter with ``name`` and ``description``, then
instructions; other files of the folder come along.  Nothing is ever executed.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, get_args

from msgspec import Struct, field
from msgspec.structs import replace

from memctl.errors import UnreadableSource, UsageError
from memctl.files import NotRegular, make_folder, open_regular, save_file
from memctl.literals import SkillCategory, SkillStatus
from memctl.paths import display_path, is_device_name, os_error_reason
from memctl.readers.data_files.structured_data import FRONT_MATTER_CHARS, load_front_matter
from memctl.store.ledger.skill_repositories import FileEncoding

SKILL_FILE = "SKILL.md"
MAX_TEXT_BYTES = 1_000_000
"""Of a SKILL.md: agents read it whole."""
MAX_FILE_BYTES = 5_000_000
MAX_FILES = 500
MAX_FOLDER_BYTES = 20_000_000
LONGEST_NAME = 120
LONGEST_DESCRIPTION = 2_000
_LONGEST_PATH = 300
_MAX_DEPTH = 8
_MAX_WORDS = 50
_NO_SKILLS = frozenset(("readme.md", "license.md", "changelog.md", "contributing.md"))
_FRONT = re.compile(
    r"\ufeff?---[^\S\n]*\r?\n(.*?)^---[^\S\n]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
_NAME_LINE = re.compile(
    r"^[\"']?name[\"']?[^\S\n]*:.*(?:\n[^\S\n]+\S.*)*$", re.IGNORECASE | re.MULTILINE
)
"""The name in front matter, with the lines that go on with it."""
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*\s*$", re.MULTILINE)
_DEPENDENCY = re.compile(r"(?P<name>[^@]+)(?:@v?(?P<version>\d{1,6}))?")
_EXECUTION = (
    "allowed-tools", "command", "prompt", "inputs", "outputs", "license", "compatibility",
)  # fmt: skip
"""Keys of the front matter that say how a skill is run, and under what terms."""


class AttachedFile(Struct, frozen=True):
    """A file beside the SKILL.md."""

    path: str
    """Below the folder, with ``/``."""
    content: str
    encoding: FileEncoding

    @property
    def data(self) -> bytes:
        """Its bytes."""
        return file_bytes(self.content, self.encoding)


class SkillDraft(Struct, frozen=True):
    """A skill as a file describes it."""

    name: str
    description: str
    content: str
    """The whole file."""
    category: SkillCategory | None = None
    """None where it is not said."""
    status: SkillStatus | None = None
    tags: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    successor: str = ""
    execution: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[AttachedFile, ...] = ()
    source: str = ""


def slug_of(name: str) -> str:
    """Return a name as it stands in file names and requirements: ``deploy-to-kubernetes``.

    Letters lose their accents where that leaves one of a-z; those of other scripts stay.
    """
    plain = "".join(map(_plain_letter, unicodedata.normalize("NFC", name))).lower()
    slug = re.sub(r"[\W_]+", "-", plain).strip("-")
    return slug or f"skill-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _plain_letter(letter: str) -> str:
    plain = unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode()
    return plain or (letter if letter.isalnum() else "")


def parse_requirement(text: str) -> tuple[str, int | None]:
    """Return the slug and the version that ``slug`` or ``slug@2`` asks for.

    Raises:
        UsageError: It is neither.
    """
    match = _DEPENDENCY.fullmatch(text.strip())
    if match is None or not match["name"].strip():
        raise UsageError(f"{text[:60]!r} names no skill", "write its slug, or slug@2 for a version")
    return slug_of(match["name"]), int(match["version"]) if match["version"] else None


def stored_requirements(texts: Iterable[str]) -> tuple[str, ...]:
    """Return requirements as they are stored, each once.

    Raises:
        UsageError: One names no skill.
    """
    parsed = map(parse_requirement, texts)
    return tuple(dict.fromkeys(slug if n is None else f"{slug}@{n}" for slug, n in parsed))


# --- one file ------------------------------------------------------------------------------------


def parse_skill(content: str, default_name: str, source: str = "") -> SkillDraft:
    """Return what a file says of its skill.

    Args:
        content: The whole file.
        default_name: The name of a skill whose front matter has none.
        source: Where it is from.

    Raises:
        UnreadableSource: Its front matter cannot be read.
        UsageError: A value in it cannot be used.
    """
    header, body = _front_matter(content)
    metadata = header.get("metadata")
    extra = metadata if isinstance(metadata, dict) else {}
    known = {**extra, **header}
    known = {str(key).strip().lower().replace("_", "-"): value for key, value in known.items()}
    is_own = any(str(key).strip().lower() == "triggers" for key in header)
    triggers = _words(known.get("triggers")) if is_own else ()
    name = one_line(known.get("name")) or _heading_of(body, header) or default_name
    description = one_line(known.get("description")) or _first_paragraph(body)
    return SkillDraft(
        name=checked_skill_name(name),
        description=description[:LONGEST_DESCRIPTION],
        content=content,
        category=checked_category(one_line(known.get("category"))),
        status=_status(one_line(known.get("status"))),
        tags=_words(known.get("tags")),
        requires=stored_requirements(_words(known.get("requires", known.get("dependencies")))),
        successor=_slug_or_nothing(one_line(known.get("successor", known.get("replaced-by")))),
        execution={key: known[key] for key in _EXECUTION if key in known},
        metadata={**extra, **({"triggers": triggers} if triggers else {})},
        source=source,
    )


def _front_matter(content: str) -> tuple[dict[str, Any], str]:
    match = _FRONT.match(content[: FRONT_MATTER_CHARS + 10])
    if match is None:
        if re.match(r"\ufeff?---[^\S\n]*\r?\n", content):
            raise UnreadableSource(
                f"its front matter does not end within {FRONT_MATTER_CHARS:,} characters",
                "close it with a line of ---",
            )
        return {}, content
    # The blank line stands for the fence, so that errors name the lines of the file.
    values = load_front_matter(f"\n{match[1]}")
    if values in (None, ""):
        values = {}
    if not isinstance(values, dict):
        raise UnreadableSource("its front matter is no mapping", "write lines like name: deploy")
    return {str(key): value for key, value in values.items()}, content[match.end() :]


def body_of(content: str) -> str:
    """Return the text of a skill below its front matter."""
    front = _FRONT.match(content)
    return content if front is None else content[front.end() :]


def with_name(content: str, name: str) -> str:
    """Return the text of a skill with another name in its front matter."""
    import yaml

    written = yaml.safe_dump({"name": name}, allow_unicode=True, width=1_000_000).strip()
    front = _FRONT.match(content)
    if front is None:
        return f"---\n{written}\n---\n\n{content}"
    header, count = _NAME_LINE.subn(lambda _: written, front[1], 1)
    header = header if count else f"{written}\n{header}"
    return f"{content[: front.start(1)]}{header}{content[front.end(1) :]}"


def one_line(value: object) -> str:
    """Return a text without breaks and blanks at its ends; "" for what is none."""
    return " ".join(value.split()) if isinstance(value, str) else ""


def _words(value: object) -> tuple[str, ...]:
    """Return a list of words, given as a list or with commas."""
    items = value if isinstance(value, list) else value.split(",") if isinstance(value, str) else ()
    words = [one_line(item) for item in items if isinstance(item, str)]
    if len(words) > _MAX_WORDS:
        raise UsageError(f"a list in it has more than {_MAX_WORDS} entries", "leave some out")
    return tuple(dict.fromkeys(word for word in words if word))


def _heading_of(body: str, header: Mapping[str, Any]) -> str:
    match = None if header else _HEADING.search(body)
    return one_line(match[1]) if match else ""


def _first_paragraph(body: str) -> str:
    for block in re.split(r"\n\s*\n", body):
        lines = [line for line in block.strip().splitlines() if not line.startswith("#")]
        if text := one_line(" ".join(lines)):
            return text
    return ""


def _slug_or_nothing(name: str) -> str:
    return slug_of(name) if name else ""


def checked_skill_name(name: str) -> str:
    """Return the name of a skill without blanks at its ends.

    Raises:
        UsageError: It cannot be one.
    """
    stripped = name.strip()
    if not stripped or len(stripped) > LONGEST_NAME or not stripped.isprintable():
        raise UsageError(
            f"{name[:40]!r} cannot be the name of a skill",
            f"use 1 to {LONGEST_NAME} characters that can be shown",
        )
    return stripped


def checked_category(word: str) -> SkillCategory | None:
    """Return a category; None for "".

    Raises:
        UsageError: It is none.
    """
    wanted = word.lower().replace(" ", "_").replace("-", "_")
    known: Mapping[str, SkillCategory] = {each: each for each in get_args(SkillCategory)}
    if wanted and wanted not in known:
        raise UsageError(f"there is no category {word[:40]!r}", f"use {', '.join(known)}")
    return known.get(wanted)


def _status(word: str) -> SkillStatus | None:
    known: Mapping[str, SkillStatus] = {each: each for each in get_args(SkillStatus)}
    if word and word.lower() not in known:
        raise UsageError(f"there is no status {word[:40]!r}", f"use {', '.join(known)}")
    return known.get(word.lower())


# --- folders -------------------------------------------------------------------------------------


class FoundSkill(Struct, frozen=True):
    """A skill in a folder: its draft, or why there is none."""

    source: str
    draft: SkillDraft | None
    problem: str = ""
    hint: str = ""
    left_out: tuple[str, ...] = ()
    """Files of its folder that were not taken, and why."""


Clean = Callable[[str], str]


def find_skills(path: Path, clean: Clean = str) -> Iterator[FoundSkill]:
    """Yield the skills of a file or a folder, in a steady order.

    A folder with a SKILL.md is one skill; of others every folder below that has one, and every
    Markdown file in the folder itself.  Links are not followed.

    Args:
        path: The file or folder.
        clean: Takes secrets out of a text before anything else is made of it.
    """
    if not path.is_dir():
        named = path.name.lower() == SKILL_FILE.lower()
        yield _read(path, path.absolute().parent if named else None, clean)
        return
    yield from _below(path, 0, clean)


def _below(folder: Path, depth: int, clean: Clean) -> Iterator[FoundSkill]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield FoundSkill(display_path(folder), None, os_error_reason(error))
        return
    own = [entry for entry in entries if entry.name.lower() == SKILL_FILE.lower()]
    if own:
        yield _read(Path(own[0].path), folder, clean)
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.is_symlink():
            continue
        if entry.is_dir(follow_symlinks=False):
            if depth < _MAX_DEPTH:
                yield from _below(Path(entry.path), depth + 1, clean)
        elif depth == 0 and _is_plain_skill(entry.name.lower()):
            yield _read(Path(entry.path), None, clean)


def _is_plain_skill(name: str) -> bool:
    return name.endswith(".md") and name not in _NO_SKILLS


def _read(path: Path, folder: Path | None, clean: Clean) -> FoundSkill:
    source = display_path(path)
    try:
        content = clean(read_skill_text(path))
        default = folder.absolute().name if folder else path.stem
        draft = parse_skill(content, default or path.stem, source)
        files, left_out = _attached_files(folder, path, clean) if folder else ((), ())
    except (UnreadableSource, UsageError) as error:
        return FoundSkill(source, None, error.message, error.hint)
    except OSError as error:
        return FoundSkill(source, None, os_error_reason(error))
    return FoundSkill(source, replace(draft, files=files), left_out=left_out)


def read_skill_text(path: Path) -> str:
    """Return the text of a SKILL.md as it is.

    Raises:
        UnreadableSource: It is too big, binary, or no UTF-8.
        OSError: It cannot be read.
    """
    return checked_skill_text(_read_bounded(path, MAX_TEXT_BYTES))


def checked_skill_text(data: bytes) -> str:
    """Return the text of a skill.

    Raises:
        UnreadableSource: It is too big, binary, or no UTF-8.
    """
    if len(data) > MAX_TEXT_BYTES:
        raise UnreadableSource(
            f"it is larger than {MAX_TEXT_BYTES:,} bytes", "move details into files beside it"
        )
    if b"\0" in data:
        raise UnreadableSource("it is binary", "a skill is Markdown in UTF-8")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableSource(
            f"it is not UTF-8 at byte {error.start}", "save it as UTF-8"
        ) from None
    if not text.strip("\ufeff \t\r\n"):
        raise UnreadableSource("it is empty", "write what the skill does")
    return text


def _read_bounded(path: Path, limit: int) -> bytes:
    with open_regular(path) as file:
        return file.read(limit + 1)


def _attached_files(
    folder: Path, main: Path, clean: Clean
) -> tuple[tuple[AttachedFile, ...], tuple[str, ...]]:
    """Return the other files of a skill's folder, and those that were left out."""
    found: list[AttachedFile] = []
    left_out: list[str] = []
    total = 0
    for path in _files_below(folder, 0, left_out):
        if path == main:
            continue
        name = path.relative_to(folder).as_posix()
        if why := path_problem(name):
            left_out.append(f"{display_path(name)}: {why}")
            continue
        try:
            data = _read_bounded(path, MAX_FILE_BYTES)
        except (OSError, NotRegular) as error:
            left_out.append(f"{display_path(name)}: {os_error_reason(error)}")
            continue
        total += len(data)
        if len(data) > MAX_FILE_BYTES:
            raise UnreadableSource(
                f"its file {display_path(name)} is larger than {MAX_FILE_BYTES:,} bytes",
                "leave it out of the folder",
            )
        if len(found) == MAX_FILES or total > MAX_FOLDER_BYTES:
            raise UnreadableSource(
                f"its folder has more than {MAX_FILES} files or {MAX_FOLDER_BYTES:,} bytes",
                "is it the folder of a skill? split it",
            )
        content, encoding = encoded_file(data)
        if encoding == "utf-8":
            content = clean(content)
        found.append(AttachedFile(name, content, encoding))
    return tuple(found), tuple(left_out)


def _files_below(folder: Path, depth: int, left_out: list[str]) -> Iterator[Path]:
    for entry in sorted(os.scandir(folder), key=lambda each: each.name):
        if entry.is_symlink():
            left_out.append(f"{display_path(entry.name)}: it is a link")
        elif entry.is_dir(follow_symlinks=False):
            if entry.name in (".git", "__pycache__", "node_modules"):
                continue
            if depth < _MAX_DEPTH:
                yield from _files_below(Path(entry.path), depth + 1, left_out)
            else:
                left_out.append(f"{display_path(entry.name)}: it is too deep")
        elif entry.is_file(follow_symlinks=False):
            yield Path(entry.path)
        else:
            left_out.append(f"{display_path(entry.name)}: it is no regular file")


def path_problem(name: str) -> str:
    """Return why a file must not be written under a name below a folder; "" where it may."""
    parts = PurePosixPath(name).parts
    if not name or len(name) > _LONGEST_PATH or not parts:
        return "its name is empty or too long"
    if not name.isprintable() or "\\" in name or ":" in name:
        return "its name has characters that not every system can show or store"
    if name.startswith("/") or name != "/".join(parts) or any(p in (".", "..") for p in parts):
        return "its name leads out of the folder"
    if any(is_device_name(part) or part != part.rstrip(" .") for part in parts):
        return "its name means something else on Windows"
    return ""


def encoded_file(data: bytes) -> tuple[str, FileEncoding]:
    """Return bytes as text, or in base64 where they are none."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return base64.b64encode(data).decode("ascii"), "base64"
    return text, "utf-8"


def file_bytes(content: str, encoding: FileEncoding) -> bytes:
    """Return the bytes that :func:`encoded_file` was given."""
    return base64.b64decode(content) if encoding == "base64" else content.encode("utf-8")


def digest(data: bytes) -> str:
    """Return the SHA-256 of some bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def write_folder(folder: Path, content: str, files: Iterable[AttachedFile]) -> list[str]:
    """Write a skill as a folder; return which files were left out, and why.

    Raises:
        OSError: It cannot be written.
    """
    left_out = []
    make_folder(folder)
    save_file(folder / SKILL_FILE, content.encode("utf-8"))
    for file in files:
        if why := path_problem(file.path):
            left_out.append(f"{display_path(file.path)}: {why}")
            continue
        path = folder.joinpath(*PurePosixPath(file.path).parts)
        if any(parent.is_symlink() for parent in (path, *path.parents) if folder in parent.parents):
            left_out.append(f"{display_path(file.path)}: a link stands in its way")
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(path, file.data)
    return left_out
