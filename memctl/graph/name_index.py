"""Names resolved to nodes, with the passages that mention each; the basis of graph and walks."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from memctl.graph.derivation import LINKS_TO, OBJECT, PAGE, SUBJECT, VALUE
from memctl.graph.entity_names import (
    is_everyday,
    is_given_name,
    is_place,
    is_short_for,
    name_key,
    parse_company,
    parse_person,
    stated_names,
)
from memctl.graph.mentions import Link, Mentions, Passage, context_of, read_mentions
from memctl.graph.name_resolution import (
    EVERYWHERE,
    Decisions,
    Place,
    Resolution,
    people_by_name_part,
    resolve,
)
from memctl.graph.page_names import read_other_titles
from memctl.ids import entity_id, storable
from memctl.rows.references import BETWEEN_ENTITIES
from memctl.store.file_caches import code_digest, kept_or_made
from memctl.store.tables.filter_expressions import Expr, both, col

if TYPE_CHECKING:
    from memctl.graph.entity_names import Person
    from memctl.store.tables.snapshot import Snapshot

NO_DECISIONS = Decisions()
_INITIALLED = re.compile(r"(?<![\w.])[A-Z]\. ?[A-Z][\w'’-]*\w")
_WORDS = re.compile(r"[^\W\d_][\w]*")
_MAX_ALIASES = 30
_SHORTEST_OF_ONE = 3
"""Initials are those of many."""


class Node(Struct, frozen=True):
    """A person or thing with names: what its names were resolved to."""

    id: str
    name: str
    type: str
    aliases: tuple[str, ...]
    mentions: int
    """How many passages name it."""
    key: str
    """What decisions by hand know it by."""


class Fact(NamedTuple):
    """A stated edge: a wikilink, or the subject and object of a statement."""

    source: int
    target: int
    relation: str
    memory_ids: tuple[str, ...]


class Tie(NamedTuple):
    """How a passage is connected with another one, as consolidation found it."""

    target: int
    relation: str
    weight: float


class NameIndex(Struct, frozen=True, dict=True):
    """Nodes and passages, both by number, and which has which."""

    nodes: tuple[Node, ...]
    ids: tuple[str, ...]
    """The passages'."""
    documents: tuple[str, ...]
    """The documents of the passages."""
    named: tuple[tuple[int, ...], ...]
    """The nodes that each passage names."""
    about: tuple[int | None, ...]
    """The node that each passage is about, as its title says."""
    holders: tuple[tuple[int, ...], ...]
    """The passages that name each node."""
    facts: tuple[Fact, ...]
    ties: Mapping[int, tuple[Tie, ...]]
    by_key: Mapping[str, tuple[int, ...]]
    """The nodes that a name may mean, those most often mentioned first."""
    places: Mapping[tuple[str, str], int]
    """The node that each name means in each context."""
    shared: Mapping[str, tuple[str, ...]]
    """The full names of those whom texts call alike, by the key of what they are called."""

    @cached_property
    def at(self) -> Mapping[str, int]:
        """The number of every passage by its id."""
        return {id_: number for number, id_ in enumerate(self.ids)}

    @cached_property
    def sharing(self) -> Sequence[int]:
        """In how many documents each node is named."""
        return [len({self.documents[at] for at in holders}) for holders in self.holders]


def build_index(
    snapshot: Snapshot,
    where: Expr | None,
    decisions: Decisions,
    *,
    evidence_only: bool,
) -> NameIndex:
    """Read and resolve the names in the memories for which a condition holds.

    Args:
        snapshot: Whose memories.
        where: The condition; by default none.
        decisions: What was decided by hand on who is the same.
        evidence_only: Whether only verbatim passages and statements count as mentions.

    Raises:
        DamagedError: A table cannot be read.
    """
    stated = (col("level") == "memory") & col("document_id").is_null()
    verbatim = both(where, (col("level") == "evidence") | stated)
    mentions = read_mentions(snapshot, verbatim if evidence_only else where)
    said = list(_statements_of_names(snapshot, mentions))
    resolution = resolve(
        mentions.by_context(),
        mentions.types,
        decisions,
        mentions.ambiguous_speakers(),
        _stated_names(said, mentions),
    )
    found = _with_short_forms(mentions, resolution, decisions)
    numbered = _NodeNumbers(mentions, resolution, found)
    numbers = {id_: at for at, id_ in enumerate(passage.id for passage in mentions.passages)}
    contexts = {passage.id: passage.context for passage in mentions.passages}
    statements = (*_statements(snapshot, where), *_stated_relations(snapshot, contexts))
    facts = (*numbered.links(mentions.links), *numbered.stated(statements))
    return NameIndex(
        nodes=numbered.nodes,
        ids=tuple(numbers),
        documents=tuple(passage.document for passage in mentions.passages),
        named=numbered.named,
        about=numbered.about,
        holders=numbered.holders,
        facts=facts,
        ties=_ties(snapshot, numbers),
        by_key=numbered.by_key,
        places=numbered.places,
        shared=_shared_names(said),
    )


def _shared_names(stated: Iterable[tuple[str, str, str]]) -> dict[str, tuple[str, ...]]:
    """Return the full names of those who are called alike, by the key of that name."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for _, full, also in stated:
        found[_key_of_other(also)].setdefault(name_key(full), full)
    return {key: tuple(sorted(own.values())) for key, own in found.items() if len(own) > 1}


def _stated_names(stated: Sequence[tuple[str, str, str]], mentions: Mentions) -> dict[Place, str]:
    """Return the keys of people's names by those of what texts say that they are called, too.

    That holds where it is stated, and everywhere if nobody else is likely to be called so. What
    two people are called is left out, and so is what names no person.
    """
    if not stated:
        return {}
    known = _KnownNames(mentions.types)
    bearers: dict[str, dict[str, Person]] = defaultdict(dict)
    for _, full, also in stated:
        type_ = mentions.types.get(full, "other")
        if type_ == "other" and is_short_for(also, full):
            type_ = "person"
        person = parse_person(name_key(full), type_)
        if person is not None and person.is_full:
            bearers[_key_of_other(also)][name_key(full)] = person
    full_names = {name_key(full) for _, full, _ in stated}
    found: dict[Place, str] = {}
    for context, _, also in stated:
        key = _key_of_other(also)
        if len(bearers[key]) != 1 or key in full_names or not known.may_be_a_person(key):
            continue
        ((full, person),) = bearers[key].items()
        found[context, key] = full
        if known.is_of_one(key, person):
            found[EVERYWHERE, key] = full
    return found


def _key_of_other(name: str) -> str:
    """Return the key of what somebody is called, which may be a handle."""
    return name_key(name, "handle" if name.startswith("@") else "")


def _statements_of_names(snapshot: Snapshot, mentions: Mentions) -> Iterator[tuple[str, str, str]]:
    """Yield in which context who is called what, too."""
    contexts = {passage.document: passage.context for passage in mentions.passages}
    for document, title, others in read_other_titles(snapshot):
        if document in contexts and mentions.types.get(title) == "person":
            yield from ((contexts[document], title, also) for also in others)
    for passage in mentions.passages:
        yield from ((passage.context, *pair) for pair in stated_names(passage.text))


class _KnownNames:
    """What the names in memories tell of another name of somebody."""

    def __init__(self, types: Mapping[str, str]) -> None:
        self._types: dict[str, set[str]] = defaultdict(set)
        self._people: list[tuple[str, Person]] = []
        for name, type_ in types.items():
            key = name_key(name, type_)
            self._types[key].add(type_)
            person = parse_person(key, "person") if type_ in ("person", "other") else None
            if person is not None and person.is_full:
                self._people.append((f" {key} ", person))

    def may_be_a_person(self, key: str) -> bool:
        """Return whether a name is no place: "Big Red" may sound like a firm, and is stated."""
        return not ("place" in self._types[key] or is_everyday(key) or is_place(key))

    def is_of_one(self, key: str, bearer: Person) -> bool:
        """Return whether nobody else is likely to have a name: no first name, nor in another's."""
        person = parse_person(key, "person")
        is_usual = person is None or person.honorific or is_given_name(person.given)
        if person is not None and len(person.family) == 1:  # with an initial nobody else has it
            is_usual = False
        return not (is_usual or len(key) < _SHORTEST_OF_ONE) and not any(
            f" {key} " in name and other.family != bearer.family
            for name, other in self._people
            if name.strip() != key
        )


def with_edges(
    index: NameIndex, edges: Iterable[tuple[Named, str, Named]], things: Iterable[Named] = ()
) -> NameIndex:
    """Return an index with stated edges between things that no passage has to name.

    Args:
        index: The names in memories.
        things: What is there even without an edge.
        edges: Each with what it leads from, its relation, and what it leads to: name and type.
            Where memories have that name, it is that node.
    """
    nodes, by_key = list(index.nodes), dict(index.by_key)
    added: list[Fact] = []

    def number(name: str, type_: str) -> int:
        """Return the number of a node, which is added if it has none."""
        key = name_key(name)
        if not by_key.get(key):
            by_key[key] = (len(nodes),)
            nodes.append(Node(entity_id(name, type_), name, type_, (), 0, key))
        return by_key[key][0]

    for thing in things:
        number(*thing)
    for source, relation, target in edges:
        one, other = number(*source), number(*target)
        if one != other:
            added.append(Fact(one, other, relation, ()))
    holders = (*index.holders, *(() for _ in nodes[len(index.nodes) :]))
    return replace(
        index,
        nodes=tuple(nodes),
        holders=holders,
        by_key=by_key,
        facts=tuple(dict.fromkeys((*index.facts, *added))),
    )


def with_values(snapshot: Snapshot, index: NameIndex) -> NameIndex:
    """Return an index with what its names cost and when they start, as nodes of their own."""
    nodes, by_key, numbers = list(index.nodes), dict(index.by_key), dict[tuple[str, str], int]()
    added: list[Fact] = []
    columns = ["relation_type", "memory_ids", "metadata", "valid_to"]
    for row in snapshot.scan("relations", BETWEEN_ENTITIES, columns).to_pylist():
        values = json.loads(row["metadata"] or "{}")
        evidence = tuple(id_ for id_ in row["memory_ids"] if id_ in index.at)
        known = by_key.get(name_key(str(values.get(SUBJECT, ""))))
        if VALUE not in values or row["valid_to"] is not None or not evidence or not known:
            continue
        written, kind = str(values[OBJECT]), str(values[VALUE])
        number = numbers.setdefault((written, kind), len(nodes))
        if number == len(nodes):
            key = name_key(written)
            by_key[key] = (*by_key.get(key, ()), number)
            nodes.append(Node(entity_id(written, kind), written, kind, (), 0, key))
        added.append(Fact(known[0], number, row["relation_type"], evidence))
    holders = (*index.holders, *(() for _ in numbers))
    return replace(
        index,
        nodes=tuple(nodes),
        holders=holders,
        by_key=by_key,
        facts=(*index.facts, *added),
    )


def with_aliases(index: NameIndex, aliases: Mapping[str, Sequence[str]]) -> NameIndex:
    """Return an index in which nodes are also found by other names of theirs.

    Args:
        index: The names in memories.
        aliases: By a name, what else its bearer is called.
    """
    nodes, by_key = list(index.nodes), dict(index.by_key)
    for name, others in aliases.items():
        for at in by_key.get(name_key(name), ())[:1]:
            node = nodes[at]
            known = dict.fromkeys((*node.aliases, *others))
            known.pop(node.name, None)
            nodes[at] = replace(node, aliases=tuple(known))
            for key in map(name_key, others):
                by_key[key] = tuple(dict.fromkeys((*by_key.get(key, ()), at)))
    return replace(index, nodes=tuple(nodes), by_key=by_key)


Named = tuple[str, str]
"""What is named: its name and its type."""


# --- first and family names on their own ---------------------------------------------------------


class _PassageNames(Struct, frozen=True):
    """The names of every passage, with what each means in its context."""

    names: tuple[tuple[str, ...], ...]
    nodes: Mapping[tuple[str, str], str]


def _with_short_forms(
    mentions: Mentions, resolution: Resolution, decisions: Decisions
) -> _PassageNames:
    """Add the passages that call a person by a short form that was not noted there."""
    shorts = _ShortForms(mentions, resolution, decisions)
    nodes = dict(resolution.nodes)
    names = []
    for passage in mentions.passages:
        own = list(passage.names)
        for written, node in shorts.short_forms_in(passage):
            nodes[passage.context, written] = node
            own.append(written)
        names.append(tuple(dict.fromkeys(own)))
    return _PassageNames(tuple(names), nodes)


class _ShortForms:
    """The short forms of people's and companies' names that mean one in a context."""

    def __init__(self, mentions: Mentions, resolution: Resolution, decisions: Decisions) -> None:
        people: dict[str, dict[str, Person]] = defaultdict(dict)
        taken: dict[str, dict[str, str]] = defaultdict(dict)
        owners: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for (context, name), node in resolution.nodes.items():
            key = resolution.keys[name]
            person = parse_person(key, mentions.types.get(name, "other"))
            bare, kind = parse_company(key)
            if kind:
                owners[context][bare].add(node)
            elif person is not None and person.is_full and not person.generation:
                people[context][node] = person
            taken[context][key] = node
        for context, full_names in people.items():
            for word, nodes in people_by_name_part(full_names).items():
                owners[context][word] |= nodes
        self._words = {
            context: {
                word: word if _is_kept_apart(word, nodes, decisions) else next(iter(nodes))
                for word, nodes in words.items()
                if len(word) > 1 and len({*nodes, taken[context].get(word, "")} - {""}) == 1
            }
            for context, words in owners.items()
        }

    def short_forms_in(self, passage: Passage) -> Iterator[tuple[str, str]]:
        """Yield the short forms in a passage, as they are written, with the node of each."""
        words = self._words.get(passage.context)
        if not words:
            return
        for written in dict.fromkeys(_INITIALLED.findall(passage.text)):
            if name_key(written) in words:
                yield written, words[name_key(written)]
        for written in dict.fromkeys(_WORDS.findall(passage.text)):
            node = words.get(written.casefold())
            if node is not None and _is_alone(written, passage.text):
                yield written, node


def _is_kept_apart(word: str, nodes: Iterable[str], decisions: Decisions) -> bool:
    return any(decisions.are_apart(word, node) for node in nodes)


def _is_alone(word: str, text: str) -> bool:
    """Return whether a word names a person somewhere by itself, not as part of a longer name."""
    plain = word.casefold()
    if word[0].islower():
        return is_given_name(plain) and not is_everyday(plain)
    alone = rf"(?<![\w@.-]){re.escape(word)}(?![\w@]|[ -][A-Z]\w)"
    return any(not _follows_a_name(text, match.start()) for match in re.finditer(alone, text))


def _follows_a_name(text: str, position: int) -> bool:
    """Return whether the word before is capitalised, and no sentence starts with it."""
    before = re.search(r"(\w+) $", text[max(0, position - 40) : position])
    if before is None or not before[1][0].isupper():
        return False
    return not is_everyday(before[1].casefold())


# --- numbers -------------------------------------------------------------------------------------


class _NodeNumbers:
    """Nodes numbered in the order in which they are first named."""

    def __init__(self, mentions: Mentions, resolution: Resolution, found: _PassageNames) -> None:
        self._keys = resolution.keys
        self._called = resolution.called
        self._types = mentions.types
        self._found = found
        self._numbers: dict[str, int] = {}
        self._spellings: list[Counter[str]] = []
        pairs = [self._of(*each) for each in zip(mentions.passages, found.names, strict=True)]
        self.named = tuple(named for named, _ in pairs)
        self.about = tuple(about for _, about in pairs)
        for link in mentions.links:
            self._number(link.context, link.source)
            self._number(link.context, link.target)
        self.holders = self._holders()
        self._pages = frozenset(self.about)
        self.nodes = tuple(map(self._node, self._numbers, range(len(self._numbers))))
        self.places = {
            place: self._numbers[node]
            for place, node in found.nodes.items()
            if node in self._numbers
        }
        self.by_key = self._by_key()

    def links(self, links: Iterable[Link]) -> Iterator[Fact]:
        """Yield the edges that wikilinks are; none to oneself."""
        for link in links:
            source = self.places[link.context, link.source]
            target = self.places[link.context, link.target]
            if source != target:
                yield Fact(source, target, LINKS_TO, link.memory_ids)

    def stated(
        self, statements: Iterable[tuple[str, str, str, str, tuple[str, ...]]]
    ) -> Iterator[Fact]:
        """Yield the edges of statements whose subject and object are both known by name."""
        by_context: dict[str, dict[str, int]] = defaultdict(dict)
        for (context, name), node in self.places.items():
            by_context[context].setdefault(self._keys.get(name, name_key(name)), node)
        for context, subject, relation, object_, memory_ids in statements:
            known = by_context.get(context, {})
            source, target = known.get(name_key(subject)), known.get(name_key(object_))
            if source is not None and target is not None and source != target:
                yield Fact(source, target, relation or "related_to", memory_ids)

    def _of(self, passage: Passage, names: Sequence[str]) -> tuple[tuple[int, ...], int | None]:
        numbers = dict.fromkeys(self._number(passage.context, name) for name in names)
        if not passage.title:
            return tuple(numbers), None
        about = self._number(passage.context, passage.title)
        numbers[about] = None
        return tuple(numbers), about

    def _number(self, context: str, name: str) -> int:
        node = self._found.nodes[context, name]
        number = self._numbers.setdefault(node, len(self._numbers))
        if number == len(self._spellings):
            self._spellings.append(Counter())
        self._spellings[number][name] += 1
        return number

    def _holders(self) -> tuple[tuple[int, ...], ...]:
        found: list[list[int]] = [[] for _ in self._numbers]
        for at, nodes in enumerate(self.named):
            for node in nodes:
                found[node].append(at)
        return tuple(map(tuple, found))

    def _node(self, node: str, number: int) -> Node:
        key = node.partition("\0")[0]
        spellings = self._spellings[number]
        ranked = sorted(spellings, key=lambda name: (-spellings[name], name))
        name = min(ranked, key=lambda each: self._shortness(each, key))
        types: Counter[str] = Counter()
        for each in ranked:
            types[self._types.get(each, "other")] += spellings[each]
        if number in self._pages:  # whether or not anything links to it
            types[PAGE] += 1
        type_ = min(types, key=lambda each: (each == "other", each == PAGE, -types[each], each))
        return Node(
            id=entity_id(node, type_),
            name=name,
            type=type_,
            aliases=tuple(each for each in ranked if each != name)[:_MAX_ALIASES],
            mentions=len(self.holders[number]),
            key=key,
        )

    def _shortness(self, name: str, key: str) -> tuple[bool, int]:
        """How far a spelling is from being the whole name."""
        own = self._keys.get(name, name_key(name))
        return own != key, -len(own.split(" "))

    def _by_key(self) -> Mapping[str, tuple[int, ...]]:
        found: dict[str, set[int]] = defaultdict(set)
        for number, node in enumerate(self.nodes):
            for name in (node.name, *node.aliases):
                found[name_key(name)].add(number)
            found[node.key].add(number)
        for place, key in self._called.items():
            if place in self.places:
                found[key.partition("\0")[0]].add(self.places[place])
        mentions = [node.mentions for node in self.nodes]
        return {
            key: tuple(sorted(numbers, key=lambda each: (-mentions[each], each)))
            for key, numbers in found.items()
        }


# --- statements and connections ------------------------------------------------------------------


def _statements(
    snapshot: Snapshot, where: Expr | None
) -> Iterator[tuple[str, str, str, str, tuple[str, ...]]]:
    """Yield context, subject, relation, object and evidence of statements that have all."""
    import pyarrow.compute as pc

    columns = ["session_id", "document_id", "id", "source_ids", "metadata"]
    rows = snapshot.scan("memories", both(where, col("level") == "memory"), columns)
    for row in rows.filter(pc.match_substring(rows["metadata"], '"object"')).to_pylist():
        values = json.loads(row["metadata"])
        context = context_of(row)
        parts = [values.get(part) for part in ("subject", "relation", "object")]
        if isinstance(parts[0], str) and isinstance(parts[2], str):
            evidence = tuple(row["source_ids"] or ()) or (row["id"],)
            yield context, parts[0], storable(str(parts[1] or "")), parts[2], evidence


def _stated_relations(
    snapshot: Snapshot, contexts: Mapping[str, str]
) -> Iterator[tuple[str, str, str, str, tuple[str, ...]]]:
    """Yield the same of the relations between names that passages state, by their contexts."""
    columns = ["relation_type", "memory_ids", "metadata"]
    for row in snapshot.scan("relations", BETWEEN_ENTITIES, columns).to_pylist():
        evidence = tuple(id_ for id_ in row["memory_ids"] if id_ in contexts)
        values = json.loads(row["metadata"] or "{}")
        names = [values.get(part) for part in (SUBJECT, OBJECT)]
        if evidence and all(isinstance(name, str) for name in names):
            context = contexts[evidence[0]]
            yield context, str(names[0]), row["relation_type"], str(names[1]), evidence


def _ties(snapshot: Snapshot, numbers: Mapping[str, int]) -> Mapping[int, tuple[Tie, ...]]:
    """The connections between the passages, or between what was distilled from them."""
    columns = ["source_id", "target_id", "relation_type", "weight"]
    where = ~(col("relation_type") == LINKS_TO) & ~BETWEEN_ENTITIES
    table = snapshot.scan("relations", where, columns)
    if not table.num_rows:
        return {}
    rows = list(zip(*(table[name].to_pylist() for name in columns), strict=True))
    passages = _passages_of(snapshot, {id_ for row in rows for id_ in row[:2]} - numbers.keys())
    ties: dict[int, dict[int, Tie]] = defaultdict(dict)
    for source, target, relation, weight in rows:
        one = numbers.get(passages.get(source, source))
        other = numbers.get(passages.get(target, target))
        if one is not None and other is not None and one != other:
            for here, there in ((one, other), (other, one)):
                tie = Tie(there, relation, min(max(float(weight or 0.0), 0.0), 1.0))
                known = ties[here].get(there)
                ties[here][there] = max((known or tie, tie), key=lambda each: each.weight)
    return {here: tuple(there.values()) for here, there in ties.items()}


def _passages_of(snapshot: Snapshot, ids: Iterable[str]) -> dict[str, str]:
    """The first passage that each distilled memory rests on."""
    wanted = sorted(ids)
    if not wanted:
        return {}
    rows = snapshot.get("memories", wanted, ["id", "source_ids"])
    pairs = zip(rows["id"].to_pylist(), rows["source_ids"].to_pylist(), strict=True)
    return {id_: sources[0] for id_, sources in pairs if sources}


_INDEXING_PACKAGES = ("memctl.graph", "memctl.language", "memctl.understanding")
"""Whose code decides what the index is."""


def cached_name_index(
    snapshot: Snapshot,
    where: Expr | None,
    what: str,
    decisions: Decisions,
    *,
    evidence_only: bool,
) -> NameIndex:
    """Return what ``build_index`` makes, read from disk where it was made before.

    Args:
        snapshot: Whose memories.
        where: The condition; by default none.
        what: Names the condition.  It has to hold of the same memories at any later time.
        decisions: What was decided by hand on who is the same.
        evidence_only: Whether only verbatim passages and statements count as mentions.

    Raises:
        DamagedError: A table cannot be read.
    """
    decided = sorted(decisions.same), sorted(decisions.apart)
    name = json.dumps(
        [snapshot.state, code_digest(*_INDEXING_PACKAGES), what, evidence_only, decided]
    )
    build = partial(build_index, snapshot, where, decisions, evidence_only=evidence_only)
    return kept_or_made(snapshot.derived, "names", name, NameIndex, build)
