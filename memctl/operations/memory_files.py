"""The operation ``memory``: files below ``/memories`` that a model keeps for itself.

It takes what models send to a tool of that name, and answers in the words they know
(https://docs.claude.com/en/docs/agents-and-tools/tool-use/memory-tool).  A file is a document with
versions, found like any other; a path is a name, and never one of the disk.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import NotFoundError, UsageError
from memctl.identity import documents_of
from memctl.operations.operation_context import OperationContext
from memctl.records import Filters
from memctl.validation import Rule

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase

ROOT = "/memories"
_IN_ROOT = f"external_id >= '{ROOT}/' and external_id < '{ROOT}0'"
_LONGEST_PATH = 200
_MAX_FOLDERS = 8
_MAX_LINES = 999_999
_SHOWN_LEVELS = 2
_MAX_PLACES = 50
_CONTEXT_LINES = 4
"""Lines shown before and after an edit."""

Command = Literal["view", "create", "str_replace", "insert", "delete", "rename"]


class MemoryFileParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``memory``."""

    command: Annotated[Command, Rule("What to do.")]
    path: Annotated[str | None, Rule("A file or folder below /memories; not for rename.")] = None
    view_range: Annotated[
        tuple[int, ...] | None, Rule("With view, the first and last line; -1 is the last.")
    ] = None
    file_text: Annotated[str | None, Rule("With create, the text.")] = None
    old_str: Annotated[str | None, Rule("With str_replace, the text to replace.")] = None
    new_str: Annotated[str | None, Rule("With str_replace, what stands there then.")] = None
    insert_line: Annotated[
        int | None, Rule("With insert, the line after which; 0 for the beginning.", low=0)
    ] = None
    insert_text: Annotated[str | None, Rule("With insert, the text.")] = None
    old_path: Annotated[str | None, Rule("With rename, what it is called.")] = None
    new_path: Annotated[str | None, Rule("With rename, what it is to be called.")] = None
    dry_run: Annotated[bool, Rule("Only say what would come of it.")] = False


class MemoryFileReply(Struct, frozen=True):
    """What came of a command."""

    command: Command
    path: str
    text: str
    """For the model."""
    document_id: str | None = None
    """The current version of the file; None for a folder, or if there is none."""


class MemoryFile(Struct, frozen=True):
    """A file as it is now."""

    path: str
    document_id: str
    size: int


def memory_file(context: OperationContext, parameters: MemoryFileParameters) -> MemoryFileReply:
    """Carry out a command on files below ``/memories``.

    Raises:
        NotFoundError: There is no such file.
        UsageError: The path cannot be one, or the command cannot be done.
    """
    reply = _COMMANDS[parameters.command](_Files(context, dry_run=parameters.dry_run), parameters)
    if not parameters.dry_run or parameters.command == "view":
        return reply
    return replace(reply, text=f"Nothing is written. It would say: {reply.text}", document_id=None)


def is_view_only(parameters: MemoryFileParameters) -> bool:
    """Return whether a command leaves all files as they are."""
    return parameters.command == "view"


def memory_file_text(reply: MemoryFileReply) -> str:
    """Return the text for the model."""
    return reply.text


# --- paths and files ------------------------------------------------------------------------------


def checked_path(text: str | None) -> str:
    """Return a path below ``/memories`` without a slash at its end.

    Raises:
        UsageError: It is none.
    """
    if not text:
        raise UsageError("no path", f"write one like {ROOT}/notes.md")
    path = text.rstrip("/") if text != "/" else text
    parts = path.split("/")
    is_within = path == ROOT or path.startswith(f"{ROOT}/")
    is_plain = path.isprintable() and "\\" not in path and "%" not in path
    names = parts[2:]
    if not is_within or not is_plain or any(part.strip(" .") == "" for part in names):
        raise UsageError(
            f"{text[:80]!r} is no path of a memory", f"write one below {ROOT}, without .."
        )
    if len(path) > _LONGEST_PATH or len(names) > _MAX_FOLDERS:
        raise UsageError(
            f"the path has more than {_LONGEST_PATH} characters or {_MAX_FOLDERS} parts",
            "take a shorter one",
        )
    return path


class _Files:
    """The files of one caller."""

    def __init__(self, context: OperationContext, *, dry_run: bool) -> None:
        self._context = context
        self._dry_run = dry_run
        user, names = context.identity.user, context.home.config.namespaces
        self._namespace = documents_of(names, user)

    def below(self, path: str) -> list[MemoryFile]:
        """Return the files in a folder and its folders, or the one file, by path."""
        if not self._context.home.exists(self._context.kb_to_write):
            return []
        filters = Filters(namespaces=(self._namespace,), where=_IN_ROOT)
        rows = self._base.documents.list(filters)
        found = [
            MemoryFile(row["external_id"], row["id"], row["size"])
            for row in rows.select(["external_id", "id", "size", "part"]).to_pylist()
            if row["part"] == 0
        ]
        wanted = [file for file in found if file.path == path or file.path.startswith(f"{path}/")]
        return sorted(wanted, key=lambda file: file.path)

    def find(self, path: str) -> MemoryFile | None:
        """Return the file of that path; None where there is none."""
        return next((file for file in self.below(path) if file.path == path), None)

    def existing(self, path: str) -> MemoryFile:
        """Return the file of that path.

        Raises:
            NotFoundError: There is none.
        """
        found = self.find(path)
        if found is None:
            hint = "Please provide a valid path."
            raise NotFoundError(f"The path {path} does not exist", hint)
        return found

    def read(self, file: MemoryFile) -> str:
        """Return the text of a file."""
        return self._base.documents.get(file.document_id).document.text

    def write(self, path: str, text: str) -> str | None:
        """Write a file, or a new version of it; return the id of its document, if it was written.

        Raises:
            UsageError: The text is empty.
        """
        if not text.strip():
            raise UsageError(f"the text of {path} would be empty", "delete it instead")
        if self._dry_run:
            return None
        name = path.rpartition("/")[2]
        record: dict[str, Any] = {"id": path, "text": text, "source": path, "title": name}
        if path.endswith(".md"):
            record["doc_type"] = "markdown"
        line = io.BytesIO(json.dumps(record).encode())
        report = self._context.writing().ingest(jsonl=line, namespace=self._namespace)
        outcome = report.outcomes[0]
        if outcome.document_id is None:
            raise UsageError(outcome.reason, outcome.hint)
        return outcome.document_id

    def delete(self, files: Sequence[MemoryFile]) -> None:
        """Delete files."""
        if self._dry_run:
            return
        documents = self._context.writing().documents
        for file in files:
            documents.delete(file.document_id)

    @property
    def _base(self) -> KnowledgeBase:
        return self._context.reading_existing()


# --- commands -------------------------------------------------------------------------------------


def _view(files: _Files, parameters: MemoryFileParameters) -> MemoryFileReply:
    path = checked_path(parameters.path)
    below = files.below(path)
    file = next((each for each in below if each.path == path), None)
    if file is None:
        if not below and path != ROOT:
            files.existing(path)
        return MemoryFileReply("view", path, _listing(path, below))
    lines = files.read(file).split("\n")
    if len(lines) > _MAX_LINES:
        raise UsageError(f"File {path} exceeds maximum line limit of {_MAX_LINES} lines.")
    first, last = _range(parameters.view_range, len(lines))
    shown = _number_lines(lines[first - 1 : last], first)
    text = f"Here's the content of {path} with line numbers:\n{shown}"
    return MemoryFileReply("view", path, text, file.document_id)


def _range(numbers: tuple[int, ...] | None, lines: int) -> tuple[int, int]:
    if not numbers:
        return 1, lines
    first, last = (numbers[0], numbers[1]) if len(numbers) == 2 else (0, 0)
    last = lines if last == -1 else min(last, lines)
    if not 1 <= first <= last:
        raise UsageError(f"Invalid `view_range`: {list(numbers)}", f"the file has {lines} lines")
    return first, last


def _number_lines(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{number:6d}\t{line}" for number, line in enumerate(lines, start=first))


def _listing(path: str, below: Sequence[MemoryFile]) -> str:
    sizes: dict[str, int] = {path: 0}
    for file in below:
        parts = file.path.removeprefix(path).strip("/").split("/")
        for depth in range(len(parts) + 1):
            name = "/".join([path, *parts[:depth]])
            if depth <= _SHOWN_LEVELS:
                sizes[name] = sizes.get(name, 0) + file.size
    head = (
        f"Here're the files and directories up to {_SHOWN_LEVELS} levels deep in {path},"
        " excluding hidden items and node_modules:"
    )
    return "\n".join([head, *(f"{_size(sizes[name])}\t{name}" for name in sorted(sizes))])


def _size(count: int) -> str:
    for unit in ("", "K", "M"):
        if count < 1024:
            return f"{count:.1f}{unit}" if unit else f"{count}"
        count = round(count / 1024, 1)  # type: ignore[assignment]
    return f"{count}G"


def _create(files: _Files, parameters: MemoryFileParameters) -> MemoryFileReply:
    path = _file_path(files, parameters.path)
    if files.find(path) is not None:
        raise UsageError(f"File {path} already exists", "edit it with str_replace or insert")
    made = files.write(path, _require_given(parameters.file_text, "file_text"))
    return MemoryFileReply("create", path, f"File created successfully at: {path}", made)


def _file_path(files: _Files, text: str | None) -> str:
    """Return a path at which a file can be.

    Raises:
        UsageError: It is a folder, or a part of it is a file.
    """
    path = checked_path(text)
    if path == ROOT or any(file.path != path for file in files.below(path)):
        raise UsageError(f"{path} is a directory", "name a file in it")
    parent = path.rpartition("/")[0]
    while parent != ROOT:
        if files.find(parent) is not None:
            raise UsageError(f"{parent} is a file, so nothing can be below it")
        parent = parent.rpartition("/")[0]
    return path


def _require_given(value: str | None, name: str) -> str:
    if value is None:
        raise UsageError(f"{name} is missing")
    return value


def _str_replace(files: _Files, parameters: MemoryFileParameters) -> MemoryFileReply:
    file = files.existing(checked_path(parameters.path))
    text, old = files.read(file), _require_given(parameters.old_str, "old_str")
    if not old or old not in text:
        raise UsageError(
            f"No replacement was performed, old_str `{old}` did not appear verbatim in {file.path}."
        )
    if text.count(old) > 1:
        lines, at = list[int](), -1
        while (at := text.find(old, at + 1)) >= 0 and len(lines) <= _MAX_PLACES:
            lines.append(text.count("\n", 0, at) + 1)
        shown = ", ".join(map(str, lines[:_MAX_PLACES]))
        more = " and more" if len(lines) > _MAX_PLACES else ""
        raise UsageError(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines:"
            f" {shown}{more}. Please ensure it is unique"
        )
    at = text.index(old)
    changed = text.replace(old, parameters.new_str or "")
    return _edit(files, parameters.command, file, changed, text.count("\n", 0, at) + 1)


def _insert(files: _Files, parameters: MemoryFileParameters) -> MemoryFileReply:
    file = files.existing(checked_path(parameters.path))
    lines, at = files.read(file).split("\n"), parameters.insert_line
    if at is None or at > len(lines):
        raise UsageError(
            f"Invalid `insert_line` parameter: {at}. It should be within the range of lines of the"
            f" file: [0, {len(lines)}]"
        )
    added = _require_given(parameters.insert_text, "insert_text").removesuffix("\n").split("\n")
    changed = "\n".join([*lines[:at], *added, *lines[at:]])
    return _edit(files, parameters.command, file, changed, at + 1)


def _edit(
    files: _Files, command: Command, file: MemoryFile, text: str, line: int
) -> MemoryFileReply:
    made = files.write(file.path, text)
    first = max(1, line - _CONTEXT_LINES)
    shown = _number_lines(text.split("\n")[first - 1 : line + _CONTEXT_LINES], first)
    message = f"The file {file.path} has been edited.\n{shown}"
    return MemoryFileReply(command, file.path, message, made)


def _delete(files: _Files, parameters: MemoryFileParameters) -> MemoryFileReply:
    path = checked_path(parameters.path)
    if path == ROOT:
        raise UsageError(f"{ROOT} itself cannot be deleted", "delete what is in it")
    below = files.below(path)
    if not below:
        files.existing(path)
    files.delete(below)
    return MemoryFileReply("delete", path, f"Successfully deleted {path}")


def _rename(files: _Files, parameters: MemoryFileParameters) -> MemoryFileReply:
    old, new = (
        checked_path(parameters.old_path or parameters.path),
        checked_path(parameters.new_path),
    )
    below = files.below(old)
    if not below or old == ROOT:
        files.existing(old)
    if files.below(new):
        raise UsageError(f"The destination {new} already exists")
    _file_path(files, new)
    if new.startswith(f"{old}/"):
        raise UsageError(f"{old} cannot go into itself")
    made = None
    for file in below:
        path = checked_path(new + file.path.removeprefix(old))
        made = files.write(path, files.read(file))
    files.delete(below)
    message = f"Successfully renamed {old} to {new}"
    is_file = len(below) == 1 and below[0].path == old
    return replace(MemoryFileReply("rename", new, message), document_id=made if is_file else None)


_COMMANDS: Mapping[Command, Callable[[_Files, MemoryFileParameters], MemoryFileReply]] = {
    "view": _view,
    "create": _create,
    "str_replace": _str_replace,
    "insert": _insert,
    "delete": _delete,
    "rename": _rename,
}
