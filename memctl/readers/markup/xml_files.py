"""XML: text with the names of its elements as context, repeated elements as rows.

Entities are never expanded from a document's own definitions.  The children of the root come one
by one, so a long flat file needs little memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from pathlib import Path
from typing import IO, TYPE_CHECKING

from memctl.errors import UnreadableSource
from memctl.files import open_regular
from memctl.readers.data_files.nested_values import MAX_DEPTH, too_deep
from memctl.readers.data_files.table_rows import Field, field_pieces
from memctl.readers.file_names import clean_title
from memctl.readers.pieces import Piece, assemble, group_lines, named_document
from memctl.readers.reader_errors import check_size, with_file_name
from memctl.records import SourceText

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

MAX_BYTES = 200 * 1024 * 1024

_MAX_CHILDREN = 200
"""Children of the root that are in memory before they are turned into text."""

_MAX_NAME_LENGTH = 100
"""A name is said with every value and attribute, so no more than this of it is."""

_LEAF = "leaf"

Path_ = tuple[str, ...]


def read(path: Path, name: str) -> Iterator[SourceText]:
    """Read an XML file.

    Raises:
        UnreadableSource: It is not well-formed (line and column are named), defines entities of
            its own, is nested too deeply or is too big.
    """
    check_size(path, name, MAX_BYTES)
    try:
        with open_regular(path) as file:
            pieces = element_pieces(file)
            first = next(pieces, None)
            head = named_document(name, title=_title(first))
            yield from assemble(head, chain([first] if first else [], pieces))
    except UnreadableSource as error:
        raise with_file_name(error, name) from None


def _title(first: Piece | None) -> str:
    """The title that stands among the first properties of the root, as feeds and books have it."""
    if first is None or first.kind != "properties" or first.heading.count(" > ") > 1:
        return ""
    lines = (line.partition(": ") for line in first.text.split("\n"))
    return next((clean_title(value) for name, _, value in lines if name == "title"), "")


def element_pieces(file: IO[bytes]) -> Iterator[Piece]:
    """Pieces of an XML stream, one child of the root after the other.

    Raises:
        UnreadableSource: As :func:`read` says.
    """
    from xml.etree.ElementTree import ParseError

    from defusedxml import DefusedXmlException

    try:
        yield from _pieces_of_children(file)
    except ParseError as error:
        line, column = error.position
        reason = str(error).partition(":")[0]
        raise UnreadableSource(
            f"it is not well-formed XML: {reason} at line {line} column {column + 1}",
            "correct that place",
        ) from error
    except DefusedXmlException as error:
        raise UnreadableSource(
            "it defines entities of its own, which could expand without end",
            "remove its <!ENTITY> definitions",
        ) from error
    except (ValueError, LookupError) as error:
        raise UnreadableSource(f"it is not XML that can be read: {error}") from error


def _pieces_of_children(file: IO[bytes]) -> Iterator[Piece]:
    from defusedxml.ElementTree import iterparse

    depth = 0
    root: Element | None = None
    seen: Counter[str] = Counter()
    for event, element in iterparse(file, events=("start", "end"), forbid_external=True):
        if event == "start":
            root = element if root is None else root
            depth += 1
            if depth > MAX_DEPTH:
                raise too_deep()
            continue
        depth -= 1
        if depth == 0:
            yield from _element_pieces(element, (), seen)
        elif depth == 1 and root is not None and len(root) > _MAX_CHILDREN:
            *done, last = root
            yield from _children_pieces(done, (_label(root),), seen)
            root.text, root[:] = "", [last]


def _label(element: Element) -> str:
    """The element's name, with its title where it has one: ``chapter: The harbour``."""
    name = local_name(element)
    titles = (c for c in element[:5] if local_name(c) in ("title", "head", "name") and c.text)
    title = next((" ".join(child.text.split()) for child in titles if child.text), "")
    return f"{name}: {title}" if 0 < len(title) <= 80 else name


def local_name(element: Element) -> str:
    """The element's name without its namespace; comments and instructions have none."""
    tag = element.tag
    return _local(tag) if isinstance(tag, str) else ""


def _local(name: str) -> str:
    return name.rpartition("}")[2][:_MAX_NAME_LENGTH]


def is_mixed(element: Element) -> bool:
    """Return whether text and elements stand side by side in it, as in a paragraph."""
    if not len(element):
        return False
    return bool((element.text or "").strip()) or any(
        (child.tail or "").strip() for child in element
    )


def _text_of(element: Element) -> str:
    return " ".join("".join(element.itertext()).split())


def _element_pieces(element: Element, path: Path_, seen: Counter[str]) -> Iterator[Piece]:
    name = local_name(element)
    if is_mixed(element):
        yield Piece(f"{_text_of(element)}\n\n", "prose", " > ".join((*path, name)))
    elif not len(element):
        yield from _property_pieces(_fields(element), path)
    else:
        inner = (*path, _label(element))
        attributes = _attributes(element)
        yield from _children_pieces(list(element), inner, Counter() if path else seen, attributes)


def _children_pieces(
    children: list[Element], path: Path_, seen: Counter[str], attributes: Sequence[Field] = ()
) -> Iterator[Piece]:
    """Neighbouring leaves make properties, after the parent's own; neighbouring records rows."""
    waiting = list(attributes)
    for shape, run in groupby(children, key=_shape):
        members = list(run)
        if shape == _LEAF:
            waiting += chain.from_iterable(map(_fields, members))
            continue
        yield from _property_pieces(waiting, path)
        waiting = []
        if shape:
            yield from _record_pieces(members, path, seen)
        else:
            yield from chain.from_iterable(_element_pieces(m, path, seen) for m in members)
    yield from _property_pieces(waiting, path)


def _shape(element: Element) -> str:
    """``leaf``, the name of a record whose children are all leaves, ``""`` for what has more."""
    if not len(element):
        return _LEAF
    is_record = not is_mixed(element) and all(not len(child) for child in element)
    return f"record {local_name(element)}" if is_record else ""


def _record_pieces(records: list[Element], path: Path_, seen: Counter[str]) -> Iterator[Piece]:
    name = local_name(records[0])
    rows = [[*_attributes(r), *chain.from_iterable(map(_fields, r))] for r in records]
    yield from field_pieces(rows, heading=" > ".join((*path, name)), first_row=seen[name] + 1)
    seen[name] += len(records)


def _property_pieces(fields: list[Field], path: Path_) -> Iterator[Piece]:
    return group_lines((f"{name}: {value}\n" for name, value in fields), " > ".join(path))


def _attributes(element: Element) -> list[Field]:
    pairs = ((_local(key), " ".join(value.split())) for key, value in element.items())
    return [(f"@{name}", value) for name, value in pairs if value and not value.startswith("http")]


def _fields(leaf: Element) -> list[Field]:
    """A leaf's text under its name, then its attributes as ``name.attribute``."""
    name, text = local_name(leaf), " ".join((leaf.text or "").split())
    fields = [(name, text)] if text and name else []
    fields += [(f"{name}{key.replace('@', '.')}", value) for key, value in _attributes(leaf)]
    tail = " ".join((leaf.tail or "").split())
    return [*fields, ("text", tail)] if tail else fields
