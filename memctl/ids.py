"""Deterministic identifiers: the same thing always gets the same id; and text that can be stored.

So writing the same thing twice changes nothing.
"""

from __future__ import annotations

import hashlib

_HEX_DIGITS = 24
_AGENT, _KEPT = "agent:", ":private"


def _digest(*parts: str) -> str:
    joined = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(joined).hexdigest()[:_HEX_DIGITS]


def document_id(
    namespace: str,
    sha256: str,
    *,
    external_id: str | None = None,
    part: int = 0,
    generation: int = 0,
) -> str:
    """Id of a document: from the caller's own id where there is one, else from its content.

    ``generation`` counts the versions under the same key that came before and are history now.
    """
    key = f"c:{sha256}" if external_id is None else f"x:{external_id}"
    versions = (str(generation),) if generation else ()
    root = f"d_{_digest(namespace, key, *versions)}"
    return root if part == 0 else f"{root}.{part}"


def agent_namespace(agent: str, own: str | None = None) -> str:
    """Return the namespace of what an agent keeps to itself.

    Args:
        agent: Its name.
        own: The namespace of the user whom it works for; None for no user.
    """
    kept = f"{_AGENT}{agent}{_KEPT}"
    return kept if own is None else f"{own}:{kept}"


def private_agent(namespace: str) -> str | None:
    """Return the agent that keeps what is in a namespace to itself; None for any other one."""
    if not namespace.endswith(_KEPT):
        return None
    before, colon, agent = namespace.removesuffix(_KEPT).rpartition(":")
    return agent or None if colon and f":{before}:".endswith(f":{_AGENT}") else None


def without_keeper(namespace: str) -> str:
    """Return the user's namespace behind an agent's private one; any other unchanged.

    It is empty if the private namespace is of no user.
    """
    agent = private_agent(namespace)
    if agent is None:
        return namespace
    return namespace.removesuffix(agent_namespace(agent)).removesuffix(":")


def root_id(document: str) -> str:
    """Id of the first part of the source that a document id belongs to."""
    return document.partition(".")[0]


def memory_id(document: str, type_: str, start: int, end: int) -> str:
    """Id of a memory that stands at known offsets of a document."""
    return f"m_{_digest(document, type_, str(start), str(end))}"


def other_version_id(id_: str, version: str) -> str:
    """Id of a row of a document that two knowledge bases have under one id, but not alike.

    Args:
        id_: Of the row, with its prefix; the number of a part stays.
        version: What tells this version of the document, such as its hash.
    """
    first, dot, part = id_.partition(".")
    return f"{first[:2]}{_digest('version', first, version)}{dot}{part}"


def stated_memory_id(namespace: str, type_: str, text: str, *, salt: str = "") -> str:
    """Return the id of a stated memory; ``salt`` tells it from others that say the same."""
    return f"m_{_digest('stated', namespace, type_, text, salt)}"


def next_version_id(before: str, version: int, namespace: str, type_: str, text: str) -> str:
    """Return the id of a later version of a memory, made from the id of the one before it."""
    return stated_memory_id(namespace, type_, text, salt=f"{before}/{version}")


def insight_id(kind: str, source_ids: list[str]) -> str:
    """Id of the insight of one kind that rests on these memories, in whatever order."""
    return f"i_{_digest(kind, *sorted(source_ids))}"


def folded_name(name: str) -> str:
    """Return a name as it is compared: in small letters, between single spaces."""
    return " ".join(name.casefold().split())


def entity_id(name: str, type_: str) -> str:
    """Id of an entity by its normalised name."""
    return f"e_{_digest(folded_name(name), type_)}"


def relation_id(source: str, relation_type: str, target: str) -> str:
    """Id of the edge of one type between two nodes."""
    return f"r_{_digest(source, relation_type, target)}"


def skill_id(name: str, generation: int = 0) -> str:
    """Id of a skill by the name that its file gives it; ``generation`` where that is taken."""
    return f"sk_{_digest('skill', name, *((str(generation),) if generation else ()))}"


def proposal_id(topic: str, created_at: str, parent: str = "") -> str:
    """Id of a proposal of a skill."""
    return f"pr_{_digest('proposal', topic, created_at, parent)}"


def conflict_id(kind: str, skills: list[str], requirement: str) -> str:
    """Id of what some skills have against each other, in whatever order they are named."""
    return f"cf_{_digest(kind, requirement, *sorted(skills))}"


def storable(text: str) -> str:
    """Return a text as it is stored: with ``?`` for lone surrogates, which UTF-8 cannot encode.

    File names that are not UTF-8 have some.
    """
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


_TAG_PREFIX = "beto_"


def tag_name(tag: str) -> str:
    """Return the name of a tag without the prefix that chats mark it by: x for ``beto_x``."""
    has_prefix = tag.lower().startswith(_TAG_PREFIX) and len(tag) > len(_TAG_PREFIX)
    return tag[len(_TAG_PREFIX) :] if has_prefix else tag
