"""Which names mean the same: decided per context, from what is written there, never on likeness.

A context is a conversation or a document.  "Ann", "A. Lee" and "ann.lee@example.org" are Ann Lee
where she is the only one there that they can mean.  What was decided by hand goes before.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from memctl.graph.entity_names import (
    EXACT_TYPES,
    Person,
    initials_of,
    is_acronym,
    is_given_name,
    name_key,
    parse_company,
    parse_person,
    without_article,
)

Place = tuple[str, str]
"""A context and a name as it is written there."""
EVERYWHERE = ""
"""What stands for every context."""

_NOT_LETTERS = re.compile(r"[^a-z]+")


class Decisions(Struct, frozen=True):
    """What was decided by hand, as pairs of names' keys in alphabetical order."""

    same: frozenset[tuple[str, str]] = frozenset()
    apart: frozenset[tuple[str, str]] = frozenset()

    def are_apart(self, one: str, other: str) -> bool:
        """Return whether it was decided that these two are not the same."""
        return ordered_pair(one, other) in self.apart


class Resolution(Struct, frozen=True):
    """What every name means in every context: nodes, named by keys."""

    nodes: Mapping[Place, str]
    called: Mapping[Place, str]
    """The same without what was merged by hand."""
    keys: Mapping[str, str]
    """The key of every name."""


def ordered_pair(one: str, other: str) -> tuple[str, str]:
    """Return two keys in the order in which decisions are kept."""
    return (one, other) if one <= other else (other, one)


def resolve(
    contexts: Mapping[str, Iterable[str]],
    types: Mapping[str, str],
    decisions: Decisions,
    ambiguous_speakers: frozenset[Place] = frozenset(),
    stated: Mapping[Place, str] = MappingProxyType({}),
) -> Resolution:
    """Return what the names in each context mean.

    Args:
        contexts: The names that stand in each.
        types: What kind of thing each name is of.
        decisions: What was decided by hand.
        ambiguous_speakers: Names that in that context cannot be short for a longer one.
        stated: The keys of full names by the context in which, and the key of what, texts say
            that their bearers are called.
    """
    resolver = _Resolver(contexts, types, decisions, ambiguous_speakers)
    nodes = {
        (context, name): node
        for context in contexts
        for name, node in resolver.in_context(context).items()
    }
    joined = _first_of_groups(decisions.same)
    called = _called_too(stated, joined, decisions)

    def meant(place: Place, node: str) -> str:
        """What a node of a place is, with what was merged by hand and what texts state."""
        if node in joined or place in ambiguous_speakers:
            return joined.get(node, node)
        key = node.partition("\0")[0]
        return called.get((place[0], key)) or called.get((EVERYWHERE, key), node)

    return Resolution(
        {place: meant(place, node) for place, node in nodes.items()}, nodes, resolver.keys
    )


def _called_too(
    stated: Mapping[Place, str], joined: Mapping[str, str], decisions: Decisions
) -> dict[Place, str]:
    """Return the nodes by what texts call them, but for what was decided by hand."""
    groups: dict[str, set[str]] = defaultdict(set)
    for key, first in joined.items():
        groups[first].add(key)
    found: dict[Place, str] = {}
    for (context, also), full in stated.items():
        first = joined.get(full, full)
        own = (full, *groups[first])
        if also not in joined and not any(decisions.are_apart(also, each) for each in own):
            found[context, also] = first
    return found


class _Resolver:
    def __init__(
        self,
        contexts: Mapping[str, Iterable[str]],
        types: Mapping[str, str],
        decisions: Decisions,
        ambiguous_speakers: frozenset[Place],
    ) -> None:
        self._names = {context: tuple(dict.fromkeys(names)) for context, names in contexts.items()}
        every = dict.fromkeys(name for names in self._names.values() for name in names)
        self._types = {name: types.get(name, "other") for name in every}
        self.keys = {name: name_key(name, self._types[name]) for name in every}
        self._decisions = decisions
        self._strangers = ambiguous_speakers
        self._plain = self._without_articles()
        self._kinds = self._companies()
        self._persons = {name: self._person(name) for name in every}
        self._of_given: dict[str, list[str]] = defaultdict(list)
        for name, known in self._persons.items():
            if known is not None and known.is_full and not known.has_initial:
                self._of_given[known.given].append(name)
        self._documents = Counter(name for own in self._names.values() for name in own)
        self._given = Counter(
            person.given
            for person in set(self._persons.values())
            if person and person.is_full and not self._is_of_longer(person)
        )

    def in_context(self, context: str) -> dict[str, str]:
        """Return the node of each name in one context."""
        names = self._names[context]
        everywhere = {name: self._everywhere(name, names) for name in names}
        for name in names:
            if self._has_initial(name) and (context, name) not in self._strangers:
                everywhere[name] = self._known_elsewhere(name) or everywhere[name]
        nodes = dict(everywhere)
        full_names = self._full_names(names, everywhere)
        for name in sorted(
            names, key=lambda name: (not self._has_initial(name), -self._middle_letters(name))
        ):
            if (context, name) not in self._strangers:
                nodes[name] = self._short_for(name, everywhere, nodes, full_names) or nodes[name]
        for name in names:
            if nodes[name] == everywhere[name] and (context, name) not in self._strangers:
                nodes[name] = self._known_elsewhere(name) or nodes[name]
        for name in names:
            if nodes[name] == self.keys[name] and self._is_ambiguous(name):
                nodes[name] = f"{nodes[name]}\0{context}"
        return nodes

    # --- what holds everywhere ---

    def _without_articles(self) -> dict[str, str]:
        keys = set(self.keys.values())
        return {key: self._key_unless_apart(key, without_article(key)) for key in keys}

    def _companies(self) -> Mapping[str, frozenset[str]]:
        """The kinds that a company is known to be of, by its bare name."""
        found: dict[str, set[str]] = defaultdict(set)
        for name, key in self.keys.items():
            bare, kind = parse_company(self._plain[key])
            if kind and self._types[name] != "person":
                found[bare].add(kind)
        return {bare: frozenset(kinds) for bare, kinds in found.items()}

    def _everywhere(self, name: str, names: Sequence[str]) -> str:
        """What a name means by itself: the bare name of a company its only one."""
        key = self._plain[self.keys[name]]
        bare, kind = parse_company(key)
        kinds = self._kinds.get(bare)
        if kinds is None or self._types[name] in EXACT_TYPES:
            return self._without_honorific(name, key)
        if kind:
            return self._key_unless_apart(key, f"{bare} {kind}")
        if self._types[name] in ("person", "place") or is_given_name(key):
            return self._without_honorific(name, key)
        near = {parse_company(self._plain[self.keys[other]])[1] for other in names} - {""}
        here = near & kinds if len(kinds) > 1 else kinds
        return self._key_unless_apart(key, f"{bare} {min(here)}") if len(here) == 1 else key

    def _without_honorific(self, name: str, key: str) -> str:
        person = self._persons[name]
        if person is None or not (person.honorific and person.given):
            return key
        return self._key_unless_apart(key, key.partition(" ")[2])

    def _key_unless_apart(self, key: str, name: str) -> str:
        return key if self._decisions.are_apart(key, name) else name

    def _person(self, name: str) -> Person | None:
        if self._types[name] in EXACT_TYPES:
            return None
        return parse_person(self.keys[name], self._types[name])

    def _has_initial(self, name: str) -> bool:
        person = self._persons[name]
        return person is not None and person.has_initial

    def _middle_letters(self, name: str) -> int:
        """How much of a middle name is written: who says most of it is known first."""
        person = self._persons[name]
        return len(" ".join(person.middle)) if person else 0

    def _is_ambiguous(self, name: str) -> bool:
        """Return whether it is only a first name, which several known people have."""
        person = self._persons[name]
        if person is None or person.family or self._given[person.given] < 2:
            return False
        return not any(self.keys[name] in merged for merged in self._decisions.same)

    def _is_of_longer(self, person: Person) -> bool:
        """Return whether some whole name has the first name and initial of a person."""
        others = (self._persons[full] for full in self._of_given.get(person.given, ()))
        return person.has_initial and any(other and _may_be(person, other) for other in others)

    def _known_elsewhere(self, name: str) -> str | None:
        """Return the only person of all documents whom a first name means, if any.

        A first name, alone or with an initial, is only of whom two documents name in full.
        """
        person = self._persons[name]
        if person is None or person.honorific or len(person.given) < 2 or len(person.family) > 1:
            return None
        fitting: dict[str, int] = defaultdict(int)
        for full in self._of_given.get(person.given, ()):
            other = self._persons[full]
            if other is not None and _may_be(person, other):
                node = self._without_honorific(full, self._plain[self.keys[full]])
                fitting[node] += self._documents[full]
        only = next(iter(fitting)) if len(fitting) == 1 else None
        if only and fitting[only] < _FEWEST_DOCUMENTS:
            return None
        return None if only is None or self._is_apart(self.keys[name], name, only) else only

    # --- what holds in one context ---

    def _full_names(self, names: Sequence[str], nodes: Mapping[str, str]) -> dict[str, Person]:
        """The people who are named in full, by node."""
        found: dict[str, Person] = {}
        for name in names:
            person = self._persons[name]
            if person is not None and person.is_full:
                known = found.get(nodes[name])
                found[nodes[name]] = known if known and known.gender else person
        return found

    def _short_for(
        self,
        name: str,
        everywhere: Mapping[str, str],
        nodes: Mapping[str, str],
        full_names: Mapping[str, Person],
    ) -> str | None:
        """The one node in the context that a name is short for.

        Args:
            name: The name.
            everywhere: What each name in the context means by itself.
            nodes: What each is known to mean there so far.
            full_names: The people who are named in full, by what that means by itself.
        """
        names = tuple(everywhere)
        by_person: set[str] = set()
        if self._types[name] in ("email", "handle"):
            by_person = {
                node for node, person in full_names.items() if _is_address_of(name, person)
            }
        elif self._persons[name] is not None:
            by_person = self._people(name, names, nodes[name], full_names)
        meant: set[str] = set()
        if by_person:
            came_to = {everywhere[other]: nodes[other] for other in names}
            meant = {came_to[node] for node in by_person}
        if is_acronym(name) and self._types[name] not in EXACT_TYPES:
            meant |= self._spelled_out(name, names, nodes)
        meant.discard(nodes[name])
        only = next(iter(meant)) if len(meant) == 1 else None
        return None if only is None or self._is_apart(nodes[name], name, only) else only

    def _spelled_out(self, name: str, names: Sequence[str], nodes: Mapping[str, str]) -> set[str]:
        """The names of several words whose first letters an acronym has."""
        return {
            nodes[other]
            for other in names
            if self._types[other] not in EXACT_TYPES
            and self._types[other] != "person"
            and self.keys[name] in initials_of(self._plain[self.keys[other]])
        }

    def _is_apart(self, node: str, name: str, other: str) -> bool:
        return any(self._decisions.are_apart(one, other) for one in (node, self.keys[name]))

    def _people(
        self, name: str, names: Sequence[str], node: str, full_names: Mapping[str, Person]
    ) -> set[str]:
        person = self._persons[name]
        assert person is not None
        if person.has_initial:
            return {
                full
                for full, other in full_names.items()
                if not other.has_initial and _may_be(person, other)
            }
        if person.is_full:
            return _fuller(person, node, full_names)
        if not person.given and self._is_shared_by_couple(person, names):
            return set()
        exact = {full for full, other in full_names.items() if _may_be(person, other)}
        return exact or {
            full for full, other in full_names.items() if _is_start_of_given(person, other)
        }

    def _is_shared_by_couple(self, person: Person, names: Sequence[str]) -> bool:
        """Return whether both a Mr and a Mrs of that name are there."""
        others = (self._persons[name] for name in names)
        genders = {each.gender for each in others if each and each.family == person.family}
        return {"f", "m"} <= genders


def _fuller(person: Person, node: str, full_names: Mapping[str, Person]) -> set[str]:
    """The same name with a middle name, where all that have one can be the same."""
    if person.middle:
        longer = {
            full: other
            for full, other in full_names.items()
            if len(" ".join(other.middle)) > len(" ".join(person.middle))
        }
    else:
        longer = {full: other for full, other in full_names.items() if other.middle}
    return {
        full for full, other in longer.items() if full != node and _is_same_person(person, other)
    }


def _is_same_person(person: Person, other: Person) -> bool:
    same = (person.given, person.family) == (other.given, other.family)
    return same and person.generation == other.generation and _middles_agree(person, other)


def _middles_agree(person: Person, other: Person) -> bool:
    if not person.middle or not other.middle:
        return True
    if len(person.middle) != len(other.middle):
        return False
    pairs = zip(person.middle, other.middle, strict=True)
    return all(one == two or _is_initial_of(one, two) for one, two in pairs)


def _is_initial_of(one: str, initials: str) -> bool:
    short, long = sorted((one, initials), key=len)
    return len(short) == 1 and long.startswith(short)


def _may_be(short: Person, full: Person) -> bool:
    """Return whether a first name, a family name, or an initial with one can mean a person."""
    if short.generation and short.generation != full.generation:
        return False
    if {short.gender, full.gender} == {"f", "m"}:
        return False
    if short.given and short.family:
        if len(short.family) == 1 < len(short.given):
            return short.given == full.given and full.family.startswith(short.family)
        is_it = len(short.given) == 1 and full.given.startswith(short.given)
        return is_it and short.family == full.family and _middles_agree(short, full)
    if short.family:
        return short.family == full.family
    return short.given in (full.given, full.family)


_FEWEST_DOCUMENTS = 2
"""That name somebody in full who is meant by the first name, or with an initial, in others."""
_FEWEST_LETTERS, _FEWEST_LEFT_OUT = 3, 3
"""Of the beginning of a first name: Del for Delphine, but Ann and Anna are two names."""


def _is_start_of_given(short: Person, full: Person) -> bool:
    """Return whether a single word is what somebody's first name begins with.

    A word that is a first name itself is of somebody else: Paul is not Pauline.
    """
    if short.family or short.honorific or len(short.given) < _FEWEST_LETTERS:
        return False
    if is_given_name(short.given):
        return False
    rest = full.given.removeprefix(short.given)
    return rest != full.given and len(rest) >= _FEWEST_LEFT_OUT


def _is_address_of(address: str, person: Person) -> bool:
    """Return whether the part of an address before the @ is made of both names of a person."""
    local = address.removeprefix("@").partition("@")[0].casefold()
    parts = [part for part in _NOT_LETTERS.split(local) if part]
    given, family = person.given, person.family
    if len(parts) == 1:
        return parts[0] in (given + family, given[0] + family, family + given)
    return parts in ([given, family], [family, given], [given[0], family])


def _first_of_groups(same: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The first of each group of keys that were merged by hand, by every key of it."""
    groups: dict[str, set[str]] = {}
    for one, other in sorted(same):
        together = groups.get(one, {one}) | groups.get(other, {other})
        groups |= dict.fromkeys(together, together)
    return {key: _best(group) for key, group in groups.items()}


def _best(keys: Iterable[str]) -> str:
    """The key that says most: of the most words, then the longest."""
    return min(keys, key=lambda key: (-len(key.split(" ")), -len(key), key))


def people_by_name_part(full_names: Mapping[str, Person]) -> Mapping[str, set[str]]:
    """Return whom each first or family name, and initial with one, may be short for, by node."""
    owners: dict[str, set[str]] = defaultdict(set)
    for node, person in full_names.items():
        for short in (person.given, person.family, f"{person.given[0]} {person.family}"):
            owners[short].add(node)
    return owners
