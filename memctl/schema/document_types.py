"""What kinds of documents and memories there are, worked out from what is known of them already.

Knows media types and memory types as words; nothing of how a file is read or stored.
"""

from __future__ import annotations

from memctl.literals import ARCHIVED, EXCHANGE, DocType, MemoryKind, SourceType

_TYPES: dict[str, DocType] = {
    "text/plain": "text",
    "text/x-log": "text",
    "text/x-rst": "text",
    "text/markdown": "markdown",
    "text/html": "web",
    "text/x-source": "code",
    "application/x-ipynb+json": "code",
    "text/csv": "table",
    "text/tab-separated-values": "table",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "table",
    "application/vnd.oasis.opendocument.spreadsheet": "table",
    "application/vnd.sqlite3": "table",
    "application/pdf": "pdf",
    "message/rfc822": "email",
    "application/mbox": "email",
    "application/x-chat-export": "conversation",
    "application/x-agent-transcript": "conversation",
    "application/x-slack-export": "conversation",
    "application/epub+zip": "office",
    "application/rtf": "office",
    "application/x-subrip": "video",
    "text/vtt": "video",
}
_OFFICE = ("application/vnd.openxmlformats-officedocument.", "application/vnd.oasis.opendocument.")
_EXPERIENTIAL = frozenset(
    (
        *("observation", "reflection", "turn", EXCHANGE, "tool_output", "event"),
        *("gist", "summary", "conversation_summary", ARCHIVED),
    )
)


def doc_type_of(media_type: str, *, is_conversation: bool = False) -> DocType:
    """Return what a document is.

    Args:
        media_type: How its content is written.
        is_conversation: Whether people take turns in it, as in a chat log of plain text.
    """
    if is_conversation:
        return "conversation"
    if (known := _TYPES.get(media_type)) is not None:
        return known
    if media_type.startswith(_OFFICE):
        return "office"
    families: tuple[DocType, ...] = ("image", "audio", "video")
    family = media_type.partition("/")[0]
    return next((each for each in families if each == family), "other")


def memory_kind(type_: str) -> MemoryKind:
    """Return what a memory of a type keeps: what happened, or what is so."""
    return "experiential" if type_ in _EXPERIENTIAL else "factual"


def source_type(agent: str | None) -> SourceType:
    """Return who said what was given: the agent where one is named, else a person."""
    return "agent" if agent else "user"
