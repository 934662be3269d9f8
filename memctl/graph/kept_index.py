"""The index of names kept on disk: making it takes a second for every few thousand passages."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from memctl.graph.index import NO_DECISIONS, Fact, Index, Node, Tie, build_index
from memctl.graph.resolution import Decisions
from memctl.store.filters import Expr

if TYPE_CHECKING:
    from memctl.store.snapshot import Snapshot

_MAKING_IT = ("memctl.graph", "memctl.understand")
"""Whose code decides what the index is."""


def kept_index(
    snapshot: Snapshot,
    where: Expr | None,
    what: str,
    decisions: Decisions = NO_DECISIONS,
    *,
    evidence_only: bool = True,
) -> Index:
    """Return what ``build_index`` makes, read from disk where it was made before.

    Args:
        snapshot: Whose memories.
        where: The condition; by default none.
        what: Names the condition.  It has to hold of the same memories at any later time.
        decisions: What was decided by hand on who is the same.
        evidence_only: Whether only verbatim passages count as mentions.

    Raises:
        DamagedError: A table cannot be read.
    """
    decided = sorted(decisions.same), sorted(decisions.apart)
    name = json.dumps([snapshot.state, _code(), what, evidence_only, decided])
    known = snapshot.derived and snapshot.derived.read(name)
    if known:
        return _decoded(json.loads(known))
    made = build_index(snapshot, where, decisions, evidence_only=evidence_only)
    if snapshot.derived:
        snapshot.derived.write(name, json.dumps(_encoded(made)).encode())
    return made


@cache
def _code() -> str:
    """Return a digest of the code that makes the index."""
    digest = hashlib.sha256()
    for package in _MAKING_IT:
        for file in sorted(files(package).iterdir(), key=lambda file: file.name):
            if file.name.endswith(".py"):
                digest.update(file.read_bytes())
    return digest.hexdigest()


def _encoded(index: Index) -> dict[str, Any]:
    places: dict[str, dict[str, int]] = defaultdict(dict)
    for (context, name), node in index.places.items():
        places[context][name] = node
    return {
        "nodes": [
            (node.id, node.name, node.type, node.aliases, node.mentions, node.key)
            for node in index.nodes
        ],
        "ids": index.ids,
        "documents": index.documents,
        "named": index.named,
        "about": index.about,
        "holders": index.holders,
        "facts": [
            (fact.source, fact.target, fact.relation, fact.memory_ids) for fact in index.facts
        ],
        "ties": [
            (here, [(tie.target, tie.relation, tie.weight) for tie in ties])
            for here, ties in index.ties.items()
        ],
        "by_key": dict(index.by_key),
        "places": places,
    }


def _decoded(kept: dict[str, Any]) -> Index:
    return Index(
        nodes=tuple(
            Node(id_, name, type_, tuple(aliases), mentions, key)
            for id_, name, type_, aliases, mentions, key in kept["nodes"]
        ),
        ids=tuple(kept["ids"]),
        documents=tuple(kept["documents"]),
        named=tuple(map(tuple, kept["named"])),
        about=tuple(kept["about"]),
        holders=tuple(map(tuple, kept["holders"])),
        facts=tuple(
            Fact(source, target, relation, tuple(memory_ids))
            for source, target, relation, memory_ids in kept["facts"]
        ),
        ties={here: tuple(Tie(*tie) for tie in ties) for here, ties in kept["ties"]},
        by_key={key: tuple(nodes) for key, nodes in kept["by_key"].items()},
        places={
            (context, name): node
            for context, nodes in kept["places"].items()
            for name, node in nodes.items()
        },
    )
