"""The graph as people look at it: an overview, neighbours, a way with its evidence, communities.

Other programs read it as GraphML or DOT.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, Any, BinaryIO

from msgspec import Struct, field
from msgspec.structs import replace

from memctl.errors import UsageError
from memctl.graph.derivation import LINKS_TO, PAGE
from memctl.graph.entity_graph import (
    FACT_WEIGHT,
    Graph,
    Neighbour,
    central_passages,
    count_names,
    most_telling_sentence,
    nodes_by_sentence,
    spellings_of,
)
from memctl.graph.entity_names import name_key
from memctl.graph.name_index import Named, NameIndex, Node, with_aliases, with_edges, with_values
from memctl.graph.name_resolution import Decisions, ordered_pair
from memctl.language.term_analysis import query_terms
from memctl.literals import Direction, GraphFormat
from memctl.records import Connection
from memctl.store.tables.filter_expressions import Expr, both, col

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memctl.models.protocols import Embedder
    from memctl.store.ledger.decision_repositories import NameDecisionRepository
    from memctl.store.tables.snapshot import Snapshot

_SYNONYMS = {"references": LINKS_TO, "responsible_for": "manages"}
"""Other names of relations."""
_Insight = tuple[str, str, frozenset[int]]
"""Id, text, and the nodes that it names."""
_SHORTEST_WORD = 3
_COMPARED, _NEAR = 20_000, 5
"""At most this many names, and relations, are compared by meaning, and so many are near."""
_MIN_COSINE, _SURE_COSINE = 0.22, 0.4
"""Of what is near, where words find nothing, and after what words find.  By the built-in word
vectors "bureau" and "Office" have 0.25, "wife" and "Ann Lee married to Bob Carter" 0.23; of 14
words with 815 of texts, about half of the pairs above 0.22 are alike in spelling or use alone, and
two of the seven above 0.4."""
_READ, _SHORTEST_STEM = 30, 4
"""At most this many passages are read for what they say of names.  "roof" stands for "roofer",
shorter stems only for themselves."""
_TOP = 10
_NAMED_MEMBERS = 20
_TOPICS = 5
_SAMPLED_PASSAGES = 50
_WHERE = ("start", "end", "page", "row", "time_start", "created_at")
_SHOWN_COLUMNS = ("id", "text", "source", "title", *_WHERE)


class NodeView(Struct, frozen=True):
    """A node with how well it is connected."""

    id: str
    name: str
    type: str
    aliases: tuple[str, ...]
    mentions: int
    neighbours: int


class CommunityView(Struct, frozen=True):
    """Names that hang together, and what they have to do with each other."""

    number: int
    size: int
    members: tuple[str, ...]
    """The best connected of them."""
    topics: tuple[str, ...]
    summary: str
    """The insight or the sentence in which most of them stand."""
    memory_id: str
    """Whose words the summary is."""


class Overview(Struct, frozen=True):
    """What there is in the graph."""

    kb: str
    nodes: int
    edges: int
    passages: int
    """Of those that were read, how many name anybody or anything."""
    types: Mapping[str, int]
    communities: int
    best_connected: tuple[NodeView, ...]
    largest_communities: tuple[CommunityView, ...]
    merged: tuple[tuple[str, str], ...]
    """Names that were said by hand to mean the same."""
    kept_apart: tuple[tuple[str, str], ...]
    """Names that were said by hand not to."""


class NeighbourView(Struct, frozen=True):
    """What is near a node."""

    id: str
    name: str
    type: str
    hops: int
    weight: float
    relation: str
    """How the last step leads here."""
    via: tuple[str, ...]
    """The names between."""
    memory_ids: tuple[str, ...]
    """What shows the last step."""
    direction: Direction = "both"
    """Where the last step leads, from the name before it: ``out``, ``in``, or ``both`` for names
    that only stand together, or are related both ways."""


class FoundName(Struct, frozen=True):
    """A name that matches what was searched for, with its strongest connections."""

    id: str
    name: str
    type: str
    aliases: tuple[str, ...]
    mentions: int
    relations: tuple[NeighbourView, ...]


class Step(Struct, frozen=True):
    """One step on the way between two nodes, with the memory that shows it."""

    step: int
    name: str
    relation: str
    other: str
    weight: float
    memory_id: str
    text: str
    source: str
    title: str
    start: int | None
    end: int | None
    page: int | None
    row: int | None
    time_start: float | None
    created_at: datetime | None


class WordComparison(Struct, frozen=True):
    """How the words of a search are compared with names and relations.

    Args:
        languages: In whose ways words are stemmed.
        load: Returns what compares them by meaning; None for nothing.
        compares_passages: Whether the vectors of passages are from that, too.
    """

    languages: Sequence[str] = ("",)
    load: Callable[[], Embedder] | None = None
    compares_passages: bool = False

    def stems(self, text: str) -> set[str]:
        """Return the stems of a text, without those of stop words."""
        return set(query_terms(text, self.languages))


_BY_STEMS = WordComparison()


def _count_forms(names: Iterable[str], stems: Iterable[str]) -> int:
    """Return how many words a text has other forms of, such as "roofer" of "roof"."""
    long = [word for word in names if len(word) >= _SHORTEST_STEM]
    return sum(any(stem.startswith(word) for stem in stems) for word in long)


def _relation_words(relation: str) -> str:
    """Return the type of a relation in words."""
    return relation.replace("_", " ")


class GraphView(Struct, frozen=True, dict=True):
    """The graph of one knowledge base at one moment.

    Args:
        kb: Its name.
        snapshot: Its tables.
        where: What has to hold of memories that are looked at.
        decisions: What was decided by hand on who is the same.
        read_index: Returns the names in those memories, given such decisions.
        edges: Stated edges besides those in memories; see ``with_edges``.
        things: What is there besides the names in memories, even without an edge.
        aliases: What else documents are called, by their titles.
        words: How a search compares words; by default their English stems alone.
    """

    kb: str
    snapshot: Snapshot
    where: Expr | None
    decisions: Decisions
    read_index: Callable[[Decisions], NameIndex]
    edges: Sequence[tuple[Named, str, Named]]
    things: Sequence[Named] = ()
    aliases: Mapping[str, Sequence[str]] = field(default_factory=dict)
    words: WordComparison = _BY_STEMS

    def deciding(self, decisions: Decisions) -> GraphView:
        """Return the same with other decisions."""
        return replace(self, decisions=decisions)

    @cached_property
    def graph(self) -> Graph:
        """The graph itself."""
        things = (*self.things, *((title, PAGE) for title in self.aliases))
        index = with_values(self.snapshot, self.read_index(self.decisions))
        index = with_edges(index, self.edges, things)
        return Graph(with_aliases(index, self._aliases()) if self.aliases else index)

    def _aliases(self) -> Mapping[str, Sequence[str]]:
        """What else documents are called, without what was decided to be somebody else."""
        apart = self.decisions.are_apart
        return {
            title: [other for other in others if not apart(name_key(title), name_key(other))]
            for title, others in self.aliases.items()
        }

    def overview(self, limit: int | None = _TOP) -> Overview:
        """Return counts, at most so many of the best connected nodes, and the largest communities.

        Args:
            limit: At most this many nodes; None for all.
        """
        graph = self.graph
        order = sorted(range(len(graph.nodes)), key=lambda at: (-graph.strength(at), at))
        types = Counter(node.type for node in graph.nodes)
        return Overview(
            kb=self.kb,
            nodes=len(graph.nodes),
            edges=len(graph.edges),
            passages=sum(map(bool, graph.index.named)),
            types=dict(types.most_common()),
            communities=len(graph.communities),
            best_connected=tuple(self._node(at) for at in order[:limit]),
            largest_communities=tuple(self.communities(_TOP // 2)),
            merged=tuple(sorted(self.decisions.same)),
            kept_apart=tuple(sorted(self.decisions.apart)),
        )

    def _node(self, at: int) -> NodeView:
        node, near = self.graph.nodes[at], self.graph.adjacent.get(at, {})
        return NodeView(node.id, node.name, node.type, node.aliases, node.mentions, len(near))

    def find(self, name: str) -> tuple[Node, ...]:
        """Return the nodes that a name may mean; see ``Graph.find``.

        Raises:
            NotFoundError: There is none.
        """
        return tuple(self.graph.nodes[at] for at in self.graph.find(name))

    def bearers(self, name: str) -> tuple[Node, ...]:
        """Return whom a name may mean that is the own name of none of them, if they are several.

        Raises:
            NotFoundError: Nothing is called that.
        """
        found, exact = self.find(name), name.strip().casefold()
        is_own = any(node.name.casefold() == exact for node in found)
        return () if is_own or len(found) < 2 else found

    def called_alike(self, name: str) -> tuple[str, ...]:
        """Return the names of those whom a name may mean, if they are several.

        What texts call two people is a node of its own where nothing tells whom it means.

        Raises:
            NotFoundError: Nothing is called that.
        """
        if several := self.bearers(name):
            return tuple(node.name for node in several)
        if self.find(name)[0].name.casefold() != name.strip().casefold():
            return ()
        people: dict[str, str] = {}
        for full in self.graph.index.shared.get(name_key(name), ()):
            nodes = self.graph.index.by_key.get(name_key(full), ())
            people.setdefault(self.graph.nodes[nodes[0]].id if nodes else full, full)
        return tuple(people.values()) if len(people) > 1 else ()

    def find_only(self, name: str) -> Node:
        """Return the node that a name means.

        Raises:
            NotFoundError: There is none.
            UsageError: Several are called that.
        """
        if several := self.bearers(name):
            names = ", ".join(f"{node.name} ({node.id[:10]})" for node in several[:_TOP])
            raise UsageError(f"{name!r} may mean {names}", "name one of them in full, or by its id")
        return self.find(name)[0]

    def meant_by(self, name: str) -> tuple[Node, ...]:
        """Return the nodes that a name may mean, or else the only node whose name contains it.

        Raises:
            NotFoundError: There is none.
        """
        return tuple(self.graph.nodes[at] for at in self.graph.meant_by(name))

    def named_with(self, part: str) -> tuple[Node, ...]:
        """Return the nodes in one of whose names some whole words stand."""
        return tuple(self.graph.nodes[at] for at in self.graph.named_with(part))

    def neighbours(
        self,
        name: str,
        hops: int,
        limit: int | None = None,
        *,
        relation: str | None = None,
        direction: Direction = "both",
    ) -> list[NeighbourView]:
        """Return what is reached from a name in at most this many steps.

        Args:
            name: A name, an alias or an id, or a part of a name that no other has.
            hops: At most this many steps.
            limit: At most this many names.
            relation: Only along relations of this type; ``references`` is ``links_to``.
            direction: Only along relations that lead away from a name, or to it.

        Raises:
            NotFoundError: Nothing is called that.
        """
        return self._near(self.graph.meant_by(name)[0], hops, limit, relation, direction)

    def search(
        self,
        words: str,
        limit: int | None = None,
        *,
        relation: str | None = None,
        type_: str | None = None,
        connections: int | None = None,
    ) -> list[FoundName]:
        """Return names that a text names, then others that it may mean.

        Those are names with a word of it or another form of a word, then names whose relations say
        a word of it, and at last a few that are near to it by meaning, or of which a sentence says
        the like: "who fixes roofs" finds a roofer; best known first.

        Args:
            words: A question, or some words.
            limit: At most this many names.
            relation: Only names that have relations of this type, and these.
            type_: Only names of this type: ``person``, ``place``, ``page``, ...
            connections: At most this many for each name; by default as many as names.
        """
        most = limit if connections is None else connections
        found = (
            FoundName(
                id=node.id,
                name=node.name,
                type=node.type,
                aliases=node.aliases,
                mentions=node.mentions,
                relations=tuple(self._relations(at, most, relation, said)[:most]),
            )
            for at, said in self._matching(words)
            for node in [self.graph.nodes[at]]
            if type_ in (None, node.type)
        )
        return list(islice((each for each in found if each.relations or not relation), limit))

    def _relations(
        self, at: int, most: int | None, relation: str | None, statement: str | None
    ) -> list[NeighbourView]:
        """The relations of a node, first those of the type that a text says."""
        rows = self._near(at, 1, most, relation, "both")
        if statement is None or relation is not None:
            return rows
        first = self._near(at, 1, most, statement, "both")
        shown = {row.id for row in first}
        return [*first, *(row for row in rows if row.id not in shown)]

    def _matching(self, words: str) -> Iterator[tuple[int, str | None]]:
        """Yield the nodes that a text may mean, best first, with the relation that it says."""
        seen: set[int] = set()
        named = ((at, None) for at in self._find_named(words))
        for at, said in chain(named, self._sharing_stems(words)):
            if at not in seen:
                seen.add(at)
                yield at, said
        if name_key(words) in self.graph.index.by_key:  # it is a name, which nothing else can mean
            return
        least = _SURE_COSINE if seen else _MIN_COSINE
        near = self._near_by_meaning(words, least)
        described = ((at, None) for at in self._find_described(words, least))
        for at, said in chain(described, near):
            if at not in seen:
                seen.add(at)
                yield at, said

    def _sharing_stems(self, words: str) -> Iterator[tuple[int, str | None]]:
        """Yield the nodes whose names, then those whose relations, have another form of a word."""
        wanted = self.words.stems(words)
        index, mentions = self.graph.index, [node.mentions for node in self.graph.nodes]
        named = {
            at
            for key, nodes in index.by_key.items()
            if wanted & self.words.stems(key)
            for at in nodes
        }
        for at in sorted(named, key=lambda at: (-mentions[at], at)):
            yield at, None
        said: dict[int, tuple[int, str]] = {}
        types = {relation for _, _, relation, _ in index.facts if relation != LINKS_TO}
        meant = {each for each in types if wanted & self.words.stems(_relation_words(each))}
        for source, target, relation, _ in index.facts:
            if relation not in meant:
                continue
            text = (
                f"{index.nodes[source].name} {_relation_words(relation)} {index.nodes[target].name}"
            )
            shared = len(wanted & self.words.stems(text))
            for at in (source, target):
                said[at] = max(said.get(at, (0, "")), (shared, relation))
        for at in sorted(said, key=lambda at: (-said[at][0], -mentions[at], at)):
            yield at, said[at][1]

    def _near_by_meaning(self, words: str, threshold: float) -> Iterator[tuple[int, str | None]]:
        """Yield a few nodes that, or whose relations, are near to a text, the nearest first."""
        if self.words.load is None:
            return
        texts = self._texts_compared()
        compared, embedder = list(texts), self.words.load()
        cosines = self._vectors(compared, embedder) @ embedder.embed([words])[0]
        near = [at for at in (-cosines).argsort(kind="stable")[:_NEAR] if cosines[at] >= threshold]
        for at in near:
            yield from texts[compared[at]]

    def _vectors(self, texts: Sequence[str], embedder: Embedder) -> NDArray[np.float32]:
        """Return the vectors of names and relations, from disk where a search was made before."""
        import numpy as np

        snapshot, digest = self.snapshot, hashlib.sha256("\0".join(texts).encode()).hexdigest()
        name = json.dumps([snapshot.state, digest, embedder.id])
        kept = snapshot.derived and snapshot.derived.read("vectors", name)
        if kept:
            read = np.frombuffer(kept, dtype="<f2").reshape(len(texts), embedder.dimension)
            return read.astype(np.float32)
        made = embedder.embed(texts)
        if snapshot.derived:
            snapshot.derived.write("vectors", name, made.astype("<f2").tobytes())
        return made

    def _find_described(self, words: str, threshold: float) -> list[int]:
        """Return a few nodes described by a sentence similar to a text.

        Names are left out of the sentence, as they say nothing of their bearer. Only the passages
        nearest to the text are read.
        """
        wanted = self.words.stems(words)
        if self.words.load is None or not wanted:
            return []
        embedder = self.words.load()
        meant = embedder.embed([words])[0]
        said = [
            (at, place, rest)
            for number, text in self._passages_near(wanted, meant)
            for sentence in nodes_by_sentence(
                text, self.graph.index, self.graph.index.named[number]
            )
            for place, at, rest in sentence
        ]
        if not said:
            return []
        cosines = embedder.embed([rest for _, _, rest in said]) @ meant
        best: dict[int, tuple[int, int, float]] = {}
        for (at, place, rest), cosine in zip(said, cosines.tolist(), strict=True):
            alike = sum(map(self.words.stems(rest).__contains__, wanted)) or _count_forms(
                wanted, self.words.stems(rest)
            )
            if cosine >= threshold or (alike and threshold < _SURE_COSINE):
                best[at] = max(best.get(at, (0, -place, 0.0)), (alike, -place, cosine))
        return sorted(best, key=best.__getitem__, reverse=True)[:_NEAR]

    def _passages_near(
        self, names: set[str], vector: NDArray[np.float32]
    ) -> Iterator[tuple[int, str]]:
        """Yield the passages that are nearest to a text, by number."""
        columns, index = ("id", "text"), self.graph.index
        found = [self.snapshot.keyword(sorted(names), self.where, _READ, columns)]
        if self.words.compares_passages:
            found.append(self.snapshot.nearest(vector, self.where, _READ, columns))
        texts = {row["id"]: row["text"] for rows in found for row in rows.to_pylist()}
        for id_, text in texts.items():
            if id_ in index.at:
                yield index.at[id_], text

    def _texts_compared(self) -> dict[str, list[tuple[int, str | None]]]:
        """Return names, words of names that are no person's, and relations, with their nodes."""
        nodes = self.graph.nodes
        texts: defaultdict[str, list[tuple[int, str | None]]] = defaultdict(list)
        for at in sorted(range(len(nodes)), key=lambda at: (-nodes[at].mentions, at))[:_COMPARED]:
            name = nodes[at].name
            for text in {name, *(() if nodes[at].type == "person" else name.split())}:
                texts[text].append((at, None))
        for source, target, relation, _ in self.graph.index.facts[:_COMPARED]:
            if relation != LINKS_TO:
                text = f"{nodes[source].name} {_relation_words(relation)} {nodes[target].name}"
                texts[text] += [(source, relation), (target, relation)]
        return texts

    def _find_named(self, words: str) -> list[int]:
        """The nodes that a text names, then those that share a word of it."""
        asked = f" {name_key(words)} "
        wanted = {word for word in asked.split() if len(word) >= _SHORTEST_WORD}
        named: dict[int, bool] = {}
        for key, nodes in self.graph.index.by_key.items():
            is_named = bool(key) and f" {key} " in asked
            if is_named or wanted & {*key.split()}:
                for at in nodes:
                    named[at] = named.get(at, False) or is_named
        return sorted(named, key=lambda at: (not named[at], -self.graph.nodes[at].mentions, at))

    def _near(
        self, at: int, hops: int, limit: int | None, relation: str | None, direction: Direction
    ) -> list[NeighbourView]:
        wanted = _SYNONYMS.get(relation, relation) if relation else None

        def follows(one: int, other: int) -> bool:
            """Return whether a step is of the wanted type, and leads the wanted way."""
            if wanted and wanted not in self.graph.edge(one, other).relations:
                return False
            leads = self._direction(one, other, wanted)
            return "both" in (direction, leads) or leads == direction

        found = self.graph.neighbours(at, hops, follows)
        return [self._neighbour(each, wanted) for each in found[:limit]]

    @cached_property
    def _stated_relations(self) -> frozenset[tuple[int, int, str]]:
        """Every stated relation, from where it leads to where."""
        facts = self.graph.index.facts
        return frozenset((fact.source, fact.target, fact.relation) for fact in facts)

    def _direction(self, one: int, other: int, relation: str | None) -> Direction:
        kinds = [relation] if relation else self.graph.edge(one, other).relations
        leads = any((one, other, kind) in self._stated_relations for kind in kinds)
        comes = any((other, one, kind) in self._stated_relations for kind in kinds)
        if leads == comes:
            return "both"
        return "out" if leads else "in"

    def _neighbour(self, neighbour: Neighbour, relation: str | None) -> NeighbourView:
        nodes, edge = self.graph.nodes, self.graph.edge(*neighbour.way[-2:])
        node = nodes[neighbour.node]
        return NeighbourView(
            id=node.id,
            name=node.name,
            type=node.type,
            hops=neighbour.hops,
            weight=neighbour.weight,
            relation=relation or edge.relations[0],
            via=tuple(nodes[at].name for at in neighbour.way[1:-1]),
            memory_ids=edge.memory_ids,
            direction=self._direction(neighbour.way[-2], neighbour.way[-1], relation),
        )

    def path(self, one: str, other: str) -> list[Step]:
        """Return the steps from one name to another, each with the memory that shows it.

        Raises:
            NotFoundError: Nothing is called that, or no way leads there.
        """
        way = self.graph.path(self.graph.meant_by(one)[0], self.graph.meant_by(other)[0])
        pairs = list(pairwise(way))
        shown = [next(iter(self.graph.edge(*pair).memory_ids), "") for pair in pairs]
        rows = self._rows(shown)
        return [
            self._step(number, pair, rows.get(id_, {}))
            for number, (pair, id_) in enumerate(zip(pairs, shown, strict=True), start=1)
        ]

    def _step(self, number: int, pair: tuple[int, int], row: Mapping[str, Any]) -> Step:
        edge, names = self.graph.edge(*pair), [self.graph.nodes[at].name for at in pair]
        return Step(
            step=number,
            name=names[0],
            relation=edge.relations[0],
            other=names[1],
            weight=edge.weight,
            memory_id=row.get("id", ""),
            text=most_telling_sentence(row.get("text", ""), spellings_of(self.graph.index, pair)),
            source=row.get("source", ""),
            title=row.get("title", ""),
            **{name: row.get(name) for name in _WHERE},
        )

    def connections(self) -> Connections:
        """Return the connections that consolidation found between memories."""
        columns = ["source_id", "target_id", "relation_type", "weight"]
        found = self.snapshot.scan("relations", ~(col("relation_type") == LINKS_TO), columns)
        values = (found[name].to_pylist() for name in columns)
        edges = [Connection(*row) for row in zip(*values, strict=True)]
        ids = {id_ for edge in edges for id_ in (edge.source_id, edge.target_id)}
        memories = self._connected_memories(sorted(ids))
        known = {memory.id for memory in memories}
        return Connections(
            tuple(memories),
            tuple(edge for edge in edges if edge.source_id in known and edge.target_id in known),
        )

    def _connected_memories(self, ids: list[str]) -> list[ConnectedMemory]:
        if not ids:
            return []
        wanted = both(self.where, col("id").is_in(ids))
        columns = ["id", "text", "level", "source_ids"]
        rows = self.snapshot.scan("memories", wanted, columns).to_pylist()
        return [
            ConnectedMemory(
                row["id"],
                row["text"][:_LABEL],
                row["level"],
                _named_nodes(self.graph.index, row["id"], row["source_ids"]),
            )
            for row in sorted(rows, key=lambda row: str(row["id"]))
        ]

    def _rows(self, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        wanted = [id_ for id_ in dict.fromkeys(ids) if id_]
        rows = self.snapshot.get("memories", wanted, _SHOWN_COLUMNS).to_pylist()
        return {row["id"]: row for row in rows}

    # --- communities ---

    def communities(self, limit: int | None = None) -> list[CommunityView]:
        """Return the communities, the largest first, with what each is about."""
        groups = self.graph.communities[:limit]
        insights = self._insights() if groups else []
        return [self._community(n, members, insights) for n, members in enumerate(groups, start=1)]

    def _insights(self) -> list[_Insight]:
        """Every insight with the nodes that it names."""
        where = both(self.where, col("level") == "insight")
        rows = self.snapshot.scan("memories", where, ["id", "text", "entities"])
        by_key = self.graph.index.by_key
        return [
            (row["id"], row["text"], frozenset(n for key in keys for n in by_key.get(key, ())[:1]))
            for row in sorted(rows.to_pylist(), key=lambda row: str(row["id"]))
            for keys in [[name_key(name) for name in row["entities"] or ()]]
        ]

    def _community(
        self,
        number: int,
        members: Sequence[int],
        insights: Sequence[_Insight],
    ) -> CommunityView:
        own = frozenset(members)
        central = self._central_passages(members)
        rows = self.snapshot.get("memories", central, ["id", "text", "topics"]).to_pylist()
        topics = Counter(topic for row in rows for topic in row["topics"] or ())
        drawn = max(insights, key=lambda each: len(each[2] & own), default=None)
        if drawn is not None and len(drawn[2] & own) > 1:
            memory_id, summary = drawn[0], drawn[1]
        else:
            memory_id, summary = self._best_sentence(members, rows)
        return CommunityView(
            number=number,
            size=len(members),
            members=tuple(self.graph.nodes[at].name for at in members[:_NAMED_MEMBERS]),
            topics=tuple(topic for topic, _ in topics.most_common(_TOPICS)),
            summary=summary,
            memory_id=memory_id,
        )

    def _best_sentence(
        self, members: Sequence[int], rows: Sequence[Mapping[str, Any]]
    ) -> tuple[str, str]:
        """The sentence of the most central passage that has two members in one, and its memory."""
        spellings = spellings_of(self.graph.index, members)
        sentences = [
            (row["id"], most_telling_sentence(row["text"] or "", spellings)) for row in rows
        ]
        several = (each for each in sentences if count_names(each[1], spellings) > 1)
        return next(several, sentences[0] if sentences else ("", ""))

    def _central_passages(self, members: Sequence[int]) -> list[str]:
        """The passages that name most of a community, weighed by how well they are connected."""
        index, weights = self.graph.index, {node: self.graph.strength(node) for node in members}
        passages = dict.fromkeys(at for node in members for at in index.holders[node])
        found = central_passages(index, weights, passages, _SAMPLED_PASSAGES)
        return [index.ids[at] for at in found]


_LABEL = 80


class ConnectedMemory(Struct, frozen=True):
    """A memory that is connected with another one."""

    id: str
    label: str
    """How its text begins."""
    level: str
    nodes: tuple[int, ...]
    """The names in it, or in what it rests on, by number."""


class Connections(Struct, frozen=True):
    """Memories, and what connects them."""

    memories: tuple[ConnectedMemory, ...]
    edges: tuple[Connection, ...]


def _named_nodes(index: NameIndex, id_: str, source_ids: list[str] | None) -> tuple[int, ...]:
    places = (index.at[each] for each in (id_, *(source_ids or ())) if each in index.at)
    return tuple(dict.fromkeys(node for at in places for node in index.named[at]))


def decisions_of(repository: NameDecisionRepository) -> Decisions:
    """Return the decisions on names."""
    decided = repository.all()
    return Decisions(
        frozenset((each.one, each.other) for each in decided if each.same),
        frozenset((each.one, each.other) for each in decided if not each.same),
    )


def merge_names(
    view: GraphView, repository: NameDecisionRepository, now: datetime, one: str, other: str
) -> Node:
    """Keep that two names mean the same, and return the node that they are now.

    Raises:
        NotFoundError: Nothing is called that.
        UsageError: They are one already, or several are called so.
    """
    first, second = view.find_only(one), view.find_only(other)
    if first == second:
        raise UsageError(f"{one!r} and {other!r} are one already: {first.name}")
    written = ordered_pair(name_key(one), name_key(other))
    same = {ordered_pair(first.key, second.key)} | ({written} & view.decisions.apart)
    after = view.deciding(Decisions(view.decisions.same | same, view.decisions.apart - same))
    together = set(after.find(one)) & set(after.find(other))
    if not together:
        raise UsageError(f"{one!r} and {other!r} cannot be one: both are said of several")
    repository.put(sorted(same), now, same=True)
    return next(node for node in after.find(one) if node in together)


def unmerge_names(
    view: GraphView, repository: NameDecisionRepository, now: datetime, one: str, other: str
) -> tuple[Node, Node]:
    """Keep that two names do not mean the same, and return the nodes that they are now.

    Raises:
        NotFoundError: Nothing is called that.
        UsageError: They are two already, or nothing tells them apart.
    """
    found, others = view.find(one), view.find(other)
    if not set(found) & set(others):
        raise UsageError(f"{one!r} and {other!r} are two already")
    wanted = _pairs(name_key(one), name_key(other), found[0].key)
    decided = Decisions(view.decisions.same - wanted, view.decisions.apart | wanted)
    after = view.deciding(decided)
    now_one, now_other = after.find(one), after.find(other)
    if not wanted or set(now_one) & set(now_other):
        raise UsageError(
            f"nothing tells {one!r} and {other!r} apart",
            "names that differ in case or marks alone are one; a third name may hold them together",
        )
    repository.put(sorted(wanted), now, same=False)
    return now_one[0], now_other[0]


def _pairs(one: str, other: str, node: str) -> frozenset[tuple[str, str]]:
    """The pairs that have to be apart for one name of a node to leave it, and the other to stay."""
    leaving, staying = (other, one) if one == node else (one, other)
    return frozenset(ordered_pair(leaving, key) for key in (staying, node) if key != leaving)


# --- for other programs ---------------------------------------------------------------------------

_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BREAKS = re.compile(r"[\x00-\x1f\x7f]+")
_LISTED = "; "
NAMES = "names"
"""How a memory is connected with a name in it."""


def write_graph(
    graph: Graph, format_: GraphFormat, sink: BinaryIO, connections: Connections
) -> None:
    """Write a graph in a format, as UTF-8.

    Args:
        graph: Names, and how they hang together.
        format_: The format.
        sink: Where to.
        connections: Memories that are connected; each is a node beside the names in it.
    """
    if format_ == "graphml":
        _write_graphml(graph, connections, sink)
        return
    for line in _dot(graph, connections):
        sink.write(line.encode("utf-8", "replace"))


def _write_graphml(graph: Graph, connections: Connections, sink: BinaryIO) -> None:
    import networkx as nx

    made: nx.Graph[str] = nx.Graph()
    for node in graph.nodes:
        made.add_node(
            node.id,
            name=_for_xml(node.name),
            type=_for_xml(node.type),
            aliases=_for_xml(_LISTED.join(node.aliases)),
            mentions=node.mentions,
        )
    for (one, other), edge in graph.edges.items():
        made.add_edge(
            graph.nodes[one].id,
            graph.nodes[other].id,
            weight=round(edge.weight, 6),
            relation=_for_xml(_LISTED.join(edge.relations)),
            memories=_for_xml(_LISTED.join(edge.memory_ids)),
        )
    for number, members in enumerate(graph.communities, start=1):
        for member in members:
            made.nodes[graph.nodes[member].id]["community"] = number
    for memory in connections.memories:
        made.add_node(memory.id, name=_for_xml(memory.label), type=memory.level)
    for start, end, relation, weight in _memory_edges(graph, connections):
        known = made.get_edge_data(start, end)
        if known is not None:  # two memories can be connected in several ways
            relation = f"{known['relation']}{_LISTED}{relation}"
        made.add_edge(start, end, weight=round(weight, 6), relation=_for_xml(relation))
    nx.write_graphml_xml(made, sink)


def _memory_edges(graph: Graph, connections: Connections) -> Iterator[tuple[str, str, str, float]]:
    """Yield the edges of memories: between them, and to the names in them."""
    for edge in connections.edges:
        yield edge.source_id, edge.target_id, edge.relationship, edge.weight
    for memory in connections.memories:
        for node in memory.nodes:
            yield memory.id, graph.nodes[node].id, NAMES, FACT_WEIGHT


def _for_xml(text: str) -> str:
    """Return text without the characters that XML cannot hold."""
    return _NOT_IN_XML.sub("\ufffd", text)


def _dot(graph: Graph, connections: Connections) -> Iterator[str]:
    yield "graph memories {\n"
    for node in graph.nodes:
        yield f"  {_quote(node.id)} [label={_quote(node.name)}, class={_quote(node.type)}];\n"
    for (one, other), edge in graph.edges.items():
        ends = f"{_quote(graph.nodes[one].id)} -- {_quote(graph.nodes[other].id)}"
        weight = max(1, round(10 * edge.weight))
        yield f"  {ends} [weight={weight}, label={_quote(edge.relations[0])}];\n"
    for memory in connections.memories:
        label = f"label={_quote(memory.label)}, class={_quote(memory.level)}"
        yield f"  {_quote(memory.id)} [{label}, shape=box];\n"
    for start, end, relation, strength in _memory_edges(graph, connections):
        weight = max(1, round(10 * strength))
        ends = f"{_quote(start)} -- {_quote(end)}"
        yield f"  {ends} [weight={weight}, label={_quote(relation)}];\n"
    yield "}\n"


def _quote(text: str) -> str:
    r"""Return text as a DOT string: quotes escaped, and backslashes, so that ``\l`` is no order."""
    plain = _BREAKS.sub(" ", text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'
