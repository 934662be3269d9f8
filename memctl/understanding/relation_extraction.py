"""How two names in one sentence are connected, as English states it: who works where, and so on.

So is a name with what it costs and the day on which it starts.

Only a plain statement makes a relation: a question, a condition, a negation, a doubt, and what is
quoted or hearsay make none.  A name is what entity extraction found; what connects two of them is
the whole text between them, so a sentence that is put in another way is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from memctl.language.date_mentions import MONTHS, WEEKDAYS
from memctl.language.inline_tags import without_wikilinks
from memctl.language.sentence_splitting import split_sentences
from memctl.language.sentence_values import ValueKind, values
from memctl.language.term_analysis import terms
from memctl.language.word_lists import (
    ENGLISH_MONTHS,
    ENGLISH_WEEKDAYS,
    TITLES,
    is_common_word,
    known_names,
    stop_words,
)
from memctl.patterns import lazy_regex
from memctl.records import EntityMention


class StatedRelation(Struct, frozen=True):
    """A relation as one sentence states it, from its subject to its object."""

    subject: str
    relation: str
    object: str
    kind: ValueKind | None = None
    """What kind of value the object is; None for a name."""


class _Form(Struct, frozen=True):
    """One way to state a relation: what may stand between two names, and of which types they are.

    Of type ``other`` is a name of which nothing says what it is; it may be anything.
    """

    relation: str
    between: str
    subjects: frozenset[str]
    objects: frozenset[str]
    reverse: bool = False
    """Whether the second name is the subject."""
    known_place: bool = False
    """Whether the object has to be on the list of places."""


_PEOPLE = frozenset({"person"})
_PERSON = frozenset({"person", "other"})
_PLACE = frozenset({"place", "other"})
_GROUP = frozenset({"organization", "product", "other"})
_WORKPLACE = frozenset({"organization", "place", "other"})
_OWNER = frozenset({"person", "organization", "other"})
_THING = frozenset({"organization", "product", "place", "other"})
_TOOL = frozenset({"product", "identifier", "other"})
_USER = frozenset({"person", "organization", "product", "identifier", "other"})
_SYSTEM = frozenset({"organization", "product", "identifier", "other"})
_LED = frozenset({"person", "organization", "product", "other"})

_IS = r"(?:is|are|has been|have been|remains|has become)"
_A = r"(?:an? |the |our |their |its |his |her |one of the )?"
_HEAD = (
    r"(?:CEO|CTO|CFO|COO|head|director|manager|lead|leader|boss|chief executive(?: officer)?|"
    r"president|chair|chairman|chairwoman|chairperson|principal|captain)"
)
_JOB = (
    r"(?!(?:student|patient|client|resident|customer|visitor|speaker|winner|member|owner|founder|"
    r"regular|newcomer|parent|agent|guest) )"
    r"[a-z-]*(?:er|or|ist|ian|ant|ent|yst|intern|nurse|chef|pilot|clerk|coach|cook|associate)"
)
_BEING = r"(?:, |,? (?:who|which) (?:is|are) | (?:is|are|has been) )"
_FOUNDER = r"(?:co-?)?founder"
_SPOUSE = r"(?:wife|husband|spouse)"

_FORMS: tuple[_Form, ...] = (
    _Form(
        "works_at",
        r"(?:works?|(?:is|are) working|(?:has|have) (?:worked|been working)|(?:is|are) employed)"
        r"(?: as (?:an? |the |our )?(?:[a-z-]+ ){0,3}[a-z-]+| (?:full|part)-time| [a-z]+ly)?"
        r" (?:at|for|by)",
        _PERSON,
        _WORKPLACE,
    ),
    _Form("works_at", rf"{_BEING}{_A}(?:[a-z-]+ ){{0,3}}{_JOB} (?:at|with)", _PEOPLE, _WORKPLACE),
    _Form("manages", r"(?:manages?|leads|heads|runs|directs|supervises|oversees)", _PERSON, _LED),
    _Form("manages", rf"{_BEING}{_A}(?:[a-z-]+ ){{0,2}}{_HEAD} of", _PERSON, _LED),
    _Form("manages", rf"{_IS} (?:responsible for|in charge of)", _PERSON, _LED),
    _Form(
        "manages",
        rf"{_IS} (?:managed|led|headed|run|directed|supervised) by",
        _LED,
        _PERSON,
        reverse=True,
    ),
    _Form("reports_to", r"['’]s? (?:manager|boss|supervisor)(?: is|,)?", _PEOPLE, _PERSON),
    _Form("manages", rf"['’]s? (?:[a-z-]+ )?{_HEAD}(?: is|,)?", _GROUP, _PERSON, reverse=True),
    _Form("reports_to", r"reports?(?: directly)? to", _PERSON, _PERSON),
    _Form("member_of", rf"{_IS} {_A}(?:[a-z-]+ ){{0,2}}members? of", _OWNER, _GROUP),
    _Form("member_of", r"(?:(?:has |have )?joined|plays? for)", _OWNER, _GROUP),
    _Form("owns", r"(?:owns?|(?:has |have )?acquired)", _OWNER, _THING),
    _Form("owns", rf"{_BEING}{_A}(?:[a-z-]+ ){{0,2}}owner of", _OWNER, _THING),
    _Form("owns", rf"(?:{_IS} owned|(?:was|has been) acquired) by", _THING, _OWNER, reverse=True),
    _Form("founded", r"(?:co-?)?founded", _OWNER, _THING),
    _Form("founded", rf"{_BEING}{_A}{_FOUNDER} of", _PERSON, _THING),
    _Form(
        "founded",
        r"was (?:co-?)?founded (?:in \d{4} )?by",
        _THING,
        _OWNER,
        reverse=True,
    ),
    _Form("founded", rf"['’]s? {_FOUNDER}(?: is|,)?", _GROUP, _PERSON, reverse=True),
    _Form("married_to", rf"(?:married|(?:{_IS}|got) married to)", _PERSON, _PERSON),
    _Form("married_to", rf"{_BEING}the {_SPOUSE} of|['’]s? {_SPOUSE}(?: is|,)?", _PERSON, _PERSON),
    _Form("part_of", rf"{_IS} (?:an? )?(?:[a-z-]+ )?part of", _THING, _THING),
    _Form(
        "part_of",
        rf"{_BEING}an? (?:[a-z-]+ ){{0,2}}(?:subsidiary|division|unit|branch|department|component|"
        r"module|suburb|district) of",
        _THING,
        _THING,
    ),
    _Form("uses", r"(?:uses?|(?:is|are) using|runs? on)", _USER, _TOOL),
    _Form("uses", rf"{_IS} (?:built|written|implemented) (?:on|with|in)", _SYSTEM, _TOOL),
    _Form("uses", rf"{_IS} used by", _TOOL, _USER, reverse=True),
    _Form("depends_on", r"(?:depends? on|rel(?:ies|y) on|requires?)", _SYSTEM, _SYSTEM),
    _Form("lives_in", rf"{_IS} based in", _PEOPLE, _PLACE),
    _Form(
        "lives_in",
        r"(?:lives?(?: [a-z]+){0,3}? in|(?:is|are) living in|resides? in|"
        r"(?:has|have) (?:lived|been living) in)",
        _PERSON,
        _PLACE,
    ),
    _Form("lives_in", r"(?:has |have )?moved(?: back)? to", _PERSON, _PLACE, known_place=True),
    _Form(
        "located_in",
        rf"(?:{_IS} (?:located|based|situated|headquartered)|lies|"
        r"has its (?:headquarters|seat)) in",
        _THING,
        _PLACE,
    ),
    _Form(
        "located_in",
        rf"{_BEING}an? (?:[a-z-]+ ){{0,3}}[a-z-]+ in",
        frozenset({"organization", "place"}),
        _PLACE,
        known_place=True,
    ),
)


_ADVERB = (
    r"(?:also|now|still|currently|already|today|both|officially|mainly|primarily|directly|"
    r"usually|always|recently|later)"
)
_BEFORE_VERB = rf"(?:,? (?:who|which|that) )?(?:,? ?{_ADVERB},? )*"
_DETERMINER = (
    r"(?: (?:the|an?|our|their|its|his|her|my)"
    r"(?: (?:city|town|village|island|company) (?:of|called))?)?"
)
_TAIL = r"(?P<tail>(?: [a-z][a-z-]+){0,2})"
_VALUED: tuple[tuple[str, ValueKind, re.Pattern[str]], ...] = (
    (
        "costs",
        "money",
        lazy_regex(
            rf"\s{_BEFORE_VERB}(?:costs?|{_IS} (?:priced|sold) at|sells? for)"
            r" (?:(?:about|around|only|just|roughly|approximately) )?"
        ),
    ),
    (
        "starts_on",
        "date",
        lazy_regex(rf"\s{_BEFORE_VERB}(?:starts?|begins?)(?: again)? (?:(?:on|in) )?"),
    ),
)
"""What may stand between a name and a value, with what it makes them."""
_VALUE_VERB = lazy_regex(r"cost|priced|sold|sell|start|begin")
"""In each of these: without one a single name is connected with nothing."""
RELATION_TYPES = (*dict.fromkeys(form.relation for form in _FORMS), *(v[0] for v in _VALUED))
"""What the built-in way can tell of names."""
_EACH = lazy_regex(r" (?:per|an?|each|every) [a-z]+")
_NO_SINGLE_VALUE = lazy_regex(
    r",? (?:more|less|fewer|extra|off|cheaper|dearer|higher|lower|earlier|later|above|below|over|"
    r"under|too|or|to|through|at (?:most|least|the (?:earliest|latest)))\b|"
    r"(?:,? and | ?[-–/+] ?|, )[$€£]?\d"
)
"""After a value: it is a difference, an end of a range or one of several."""
_BETWEEN = tuple(
    lazy_regex(
        f"(?:{'' if each.between.startswith(('[', '(?:, ')) else _BEFORE_VERB}(?:{each.between}))"
        f"{_DETERMINER}{_TAIL}"
    )
    for each in _FORMS
)
_CUES = lazy_regex(
    r"\b(?:work|employ|manage|lead|head|run|direct|supervis|oversee|responsib|charge|led|report|"
    r"boss|member|join|play|own|acquir|found|co-found|married|wife|husband|spouse|part|"
    r"subsidiary|division|unit|branch|department|component|module|suburb|district|use|using|built|"
    r"written|implemented|depend|rel[iy]|require|live|living|reside|move|locat|base|situat|"
    r"headquarter|lies|seat|cost|priced|sold|sell|start|begin|C[ETFO]O|chief|president|chair|principal|captain|at|with|in)"
)
_DOUBT_BEFORE = lazy_regex(
    r"\b(?:not|no|never|neither|nor|nobody|none|without|hardly|if|unless|whether|when|once|until|"
    r"would|could|might|(?-i:may)|should|maybe|perhaps|possibly|probably|apparently|allegedly|suppose|"
    r"supposed|supposedly|imagine|pretend|wish|wishes|hope|hopes|want|wants|think|thinks|thought|"
    r"believe|believes|believed|guess|guesses|assume|assumes|claim|claims|claimed|say|says|said|"
    r"tell|tells|told|heard|hear|rumou?r|rumou?rs|doubt|doubts|suspect|suspects|dream|dreamt|"
    r"deny|denies|denied|reckons?|"
    r"formerly|previously|former|ex|or|let|either|false|wrong|untrue|myth|e\.g)\b|n['’]t\b",
    re.IGNORECASE,
)
_DOUBTS = frozenset({"perhaps", "maybe", "possibly", "probably", "apparently", "allegedly", "if"})
"""Words that may be taken for the beginning of a name where they begin a sentence."""
_DOUBT_AFTER = lazy_regex(
    r"\b(?:if|unless|until|till|no longer|any ?more|is false|is wrong|is not true|"
    r"(?:he|she|it|they) (?:says?|said|claims?|thinks?))\b|, (?:says|said|claims|I think|right)\b",
    re.IGNORECASE,
)
_BOUNDARY = lazy_regex(
    r"(?:^|[,;:.!—–(\-*•#]|\b(?:and|but|while|because|since|so|although|though|where|that|now|"
    r"today|currently|then|also|yes|well|ok|okay))\s*"
    r"(?:(?:the|our|my|his|her|their|your|an?|its) (?P<noun>(?:[a-z-]+ ){0,2}))?[\"“(*_`]*$",
    re.IGNORECASE,
)
"""What may stand before the subject; after a preposition or a verb a name is something else."""
_FORMER = lazy_regex(r"\b(?:former|ex|late|then|onetime|retired|next|future)\b")
_SINGULAR = lazy_regex(r"(?:\w+ly |now |still |also )*(?:is|has|was|\w+[^s]s)\b")
_PART_BEFORE = lazy_regex(r"[^\W\d_a-z][\w.'’]* ?(?:and|of|for|&|-|–) ?$")
_PART_AFTER = lazy_regex(r" (?:and|of|for|&|-|–) ?[^\W\d_a-z]")
"""Where a name is a part of a longer one."""
_JOINED = lazy_regex(r"\s*(?:,|,? and|&|,? as well as)\s+")
_ENDS = lazy_regex(r"[`*_)\"”]*\s*(?:[.;!,)]|$)")
_WORD_AFTER = lazy_regex(r"[`*_)\"”]*\s+([^\W_][\w'’-]*)")
_AFTER_OBJECT = frozenset({"since", "because", "which", "where", "who", "today", "now", "via"})
_BLANKS = lazy_regex(r"\s+")
_LONGEST = 400
_TYPES_WITHOUT_RELATIONS = frozenset({"url", "email", "handle"})


def extract_relations(text: str, mentions: Sequence[EntityMention]) -> list[StatedRelation]:
    """Return how names of a text are connected, each connection once.

    Args:
        text: The text.
        mentions: The names, as entity extraction found them.
    """
    types = {each.name: each.type for each in mentions if each.type not in _TYPES_WITHOUT_RELATIONS}
    if not types or (len(types) == 1 and _VALUE_VERB.search(text) is None):
        return []
    if _CUES.search(text) is None:
        return []
    plain, whole = without_wikilinks(text), _first_names(types)
    meant = {name: name for name in types} | whole
    types |= dict.fromkeys(whole, "person")
    found: dict[StatedRelation, None] = {}
    for start, end in split_sentences(plain):
        sentence = plain[start:end]
        if not _may_state(sentence) or _is_quoted(plain, start):
            continue
        line = _BLANKS.sub(" ", sentence).strip()
        named = {meant[name] for name in types if name in line}
        if not named or (len(named) == 1 and _VALUE_VERB.search(line) is None):
            continue
        names = _finder(tuple(sorted(types, key=len, reverse=True)))
        for each in (*_stated_relations(line, names, types), *_value_relations(line, names, types)):
            ends = (whole.get(each.subject, each.subject), whole.get(each.object, each.object))
            said = replace(each, subject=ends[0], object=ends[1])
            if ends[0] != ends[1]:
                found.setdefault(said)
    return list(found)


def _first_names(types: Mapping[str, str]) -> dict[str, str]:
    """Return the first names that mean one person here, each with the whole name."""
    whole: dict[str, list[str]] = {}
    for name, type_ in types.items():
        first, _, rest = name.partition(" ")
        if type_ == "person" and rest and first in known_names().given:
            whole.setdefault(first, []).append(name)
    return {
        first: names[0] for first, names in whole.items() if len(names) == 1 and first not in types
    }


@lru_cache(maxsize=256)
def _finder(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w@/#.-])(?:{'|'.join(map(re.escape, names))})(?![\w@/-])")


def _may_state(sentence: str) -> bool:
    bare = sentence.strip()
    return (
        len(bare) <= _LONGEST
        and not bare.endswith(("?", "?”", '?"', "…", "..."))
        and not bare.startswith(">")
        and "|" not in bare
        and "\t" not in bare
        and _CUES.search(bare) is not None
    )


def _is_quoted(text: str, position: int) -> bool:
    """Return whether a place stands within quotation marks that were opened before."""
    before = text[text.rfind("\n\n", 0, position) + 1 : position]
    return before.count('"') % 2 == 1 or before.count("“") > before.count("”")


def _stated_relations(
    sentence: str, names: re.Pattern[str], types: Mapping[str, str]
) -> Iterator[StatedRelation]:
    spans = [match.span() for match in names.finditer(sentence)]
    for place, ((_, end), (start, _)) in enumerate(pairwise(spans)):
        marked = sentence[end:start].strip("`*_").rstrip()
        between = marked.lstrip()
        for form, pattern in zip(_FORMS, _BETWEEN, strict=True):
            match = pattern.fullmatch(between) or pattern.fullmatch(marked)
            if match is None or not _is_noun_phrase(match["tail"]) or _FORMER.search(between):
                continue
            made = list(_of_form(form, marked.strip(), sentence, spans, place, types))
            yield from made
            if made:
                break


def _value_relations(
    sentence: str, names: re.Pattern[str], types: Mapping[str, str]
) -> Iterator[StatedRelation]:
    """Yield what a sentence says that names cost, and when they start."""
    for name in names.finditer(sentence):
        for relation, kind, verb in _VALUED:
            said = verb.match(sentence, name.end())
            if said is None or (kind == "money" and types[name[0]] == "person"):
                continue
            begin = said.end()
            value = next((v for v in values(sentence) if (v.start, v.kind) == (begin, kind)), None)
            if value is None:
                continue
            each = _EACH.match(sentence, value.end)
            end = each.end() if each else value.end
            if any(_NO_SINGLE_VALUE.match(sentence, at) for at in (value.end, end)):
                continue
            if _is_plain(sentence, name.start(), end, is_person=False):
                yield StatedRelation(name[0], relation, sentence[begin:end], kind)


def _is_noun_phrase(words: str) -> bool:
    return not stop_words("en").intersection(words.split())


def _of_form(
    form: _Form,
    words: str,
    sentence: str,
    spans: Sequence[tuple[int, int]],
    place: int,
    types: Mapping[str, str],
) -> Iterator[StatedRelation]:
    subjects, objects = _before(sentence, spans, place), _after(sentence, spans, place + 1)
    first, last = spans[subjects[0]][0], spans[objects[-1]][1]
    if len(subjects) > 1 and _SINGULAR.match(words):  # they are one name
        return
    is_apposition = words.startswith(",") and not words.startswith((", who", ", which", ", that"))
    if is_apposition and sentence[:first].rstrip().endswith(","):  # of what stands before it, too
        return
    is_person = types[sentence[slice(*spans[objects[-1]])]] == "person"
    if not _is_plain(sentence, first, last, is_person=is_person):
        return
    for one in subjects:
        for other in objects:
            names = [sentence[slice(*spans[at])] for at in (one, other)]
            fits = types[names[0]] in form.subjects and types[names[1]] in form.objects
            if not fits or names[0] == names[1]:
                continue
            if form.known_place and names[1] not in known_names().places:
                continue
            subject, object_ = reversed(names) if form.reverse else names
            yield StatedRelation(subject, form.relation, object_)


def _before(sentence: str, spans: Sequence[tuple[int, int]], place: int) -> list[int]:
    """Return a name with those that are joined to it by ``and`` before it."""
    chain = [place]
    while chain[0] and _JOINED.fullmatch(sentence[spans[chain[0] - 1][1] : spans[chain[0]][0]]):
        chain.insert(0, chain[0] - 1)
    if len(chain) > 1 and " and " not in sentence[spans[chain[0]][1] : spans[place][0]]:
        return [place]  # a list without an end, or a name that begins a clause
    return chain


def _after(sentence: str, spans: Sequence[tuple[int, int]], place: int) -> list[int]:
    """Return a name with those that are joined to it by ``and``, where the clause ends there."""
    chain = [place]
    while chain[-1] + 1 < len(spans) and _JOINED.fullmatch(
        sentence[spans[chain[-1]][1] : spans[chain[-1] + 1][0]]
    ):
        chain.append(chain[-1] + 1)
    is_list = " and " in sentence[spans[place][1] : spans[chain[-1]][0]]
    return chain if is_list and _ENDS.match(sentence, spans[chain[-1]][1]) else [place]


def _is_plain(sentence: str, first: int, last: int, *, is_person: bool) -> bool:
    """Return whether a clause states what it says, and its names are its subject and object.

    Before another noun a name is a part of a longer term, such as ``the Lisbon office``; a
    person's is not.
    """
    before, after = sentence[:first], sentence[last:]
    if sentence[first:].partition(" ")[0].lower() in _DOUBTS:
        return False
    if _PART_BEFORE.search(before) or _PART_AFTER.match(after):
        return False
    start = _BOUNDARY.search(before)
    if start is None or not _is_noun_phrase(start["noun"] or "") or _DOUBT_BEFORE.search(before):
        return False
    if before.count('"') % 2 or before.count("“") > before.count("”") or _DOUBT_AFTER.search(after):
        return False
    if _ENDS.match(after):
        return True
    word = _WORD_AFTER.match(after)
    if word is None:  # an apostrophe: it is of the name, not the name
        return False
    if is_person:
        return word[1] != "as"
    return word[1].isdigit() or word[1].lower() in stop_words("en") | _AFTER_OBJECT


# --- who has a post ------------------------------------------------------------------------------


class PostHolder(Struct, frozen=True):
    """Who has a post or a task, as one sentence states it."""

    post: frozenset[str]
    """The stems of its name, or of what is done."""
    words: str
    """Its name as the sentence has it."""
    name: str
    former: str
    """Who had it before, if the sentence says so."""
    is_new: bool
    """Whether the sentence says that it was somebody else's before."""
    is_past: bool
    """Whether it tells of another time than the one at which it was said."""
    about: frozenset[str]
    """The stems of what it may be a post of: of the titles above, and of other names."""

    def succeeds(self, other: PostHolder, *, of_any: bool = False) -> bool:
        """Return whether this one surely has got the post that the other one had.

        Posts of one name are two where each is about something that the other is not, unless the
        sentence says who had it before.  So they are where no person has it, unless ``of_any``.
        """
        mine, theirs = set(self.name.split()), set(other.name.split())
        if not self.is_new or other.is_past or self.post != other.post:
            return False
        if not mine.isdisjoint(theirs):
            return False
        if self.former:
            return not theirs.isdisjoint(self.former.split())
        is_one_post = self.about <= other.about or other.about <= self.about
        return is_one_post and (of_any or all(each._is_person() for each in (self, other)))

    def _is_person(self) -> bool:
        return self.name.split()[0] in known_names().given


_WHOEVER = frozenset(
    {"every", "each", "everybody", "everyone", "somebody", "someone", "anybody", "anyone"}
)
_CALENDAR = (*ENGLISH_MONTHS, *ENGLISH_WEEKDAYS)
_NAME = (
    r"(?-i:(?<![\w'’-])(?:(?:Dr|Mr|Mrs|Ms|Miss|Prof)\.? )?[A-ZÀ-ÖØ-Þ][\w'’-]*\w"
    r"(?: (?:(?:van|de|von|der|den|di|da|le|la) )*[A-ZÀ-ÖØ-Þ][\w'’-]*\w){0,2})"
)
_POST_WORDS = (
    r"[^\W\d_][\w'’-]*(?: (?!(?:in|on|from|since|as|until|till|now|and|so|who|which|because|after|"
    r"before|when|this|next|last|by|is|was|has|instead|again)\b)[^\W\d_][\w'’-]*){0,5}"
)
_WHOSE = r"(?:our|the|my|their)"
_PAST_OR_NOW = r"(?:is|(?P<past>was|became)|becomes|has become|will be|will become)"
_DOES = (
    r"(?:does|leads|runs|chairs|manages|handles|keeps|heads|looks after|is in charge of|"
    r"is responsible for)"
)
_TAKES_OVER = r"(?P<takes>(?:takes|took|is taking|has taken|will take) over)"
_HOLDERS = tuple(
    lazy_regex(form, re.IGNORECASE)
    for form in (
        rf"^\W*(?P<new>new )?(?P<post>{_POST_WORDS}): (?P<name>{_NAME})(?=\s*(?:[.,;()]|$))",
        rf"(?P<name>{_NAME}),? {_PAST_OR_NOW} (?P<now>now )?{_WHOSE} (?P<new>new )?"
        rf"(?P<post>{_POST_WORDS})",
        rf"(?P<name>{_NAME}) (?P<takes>becomes|will become|is going to become) "
        rf"(?:{_WHOSE} )?(?:new )?(?P<post>{_POST_WORDS})",
        rf"(?:^\W*|[.;:,] (?:and )?)(?:{_WHOSE} )?(?P<new>new )?(?P<post>{_POST_WORDS}) "
        rf"{_PAST_OR_NOW} (?P<now>now )?"
        rf"(?P<name>{_NAME})",
        rf"(?P<name>{_NAME}) {_TAKES_OVER}"
        rf"(?: from (?P<former>{_NAME}))? as (?:{_WHOSE} )?(?:new )?(?P<post>{_POST_WORDS})"
        rf"(?: from (?P<from>{_NAME}))?",
        rf"(?P<name>{_NAME}) {_TAKES_OVER} {_WHOSE} "
        rf"(?P<post>{_POST_WORDS})(?: from (?P<former>{_NAME}))?",
        rf"(?P<name>{_NAME}) (?P<takes>replaces|replaced|succeeds|succeeded|is replacing|"
        rf"will replace) (?P<former>{_NAME}) as (?:{_WHOSE} )?(?:new )?(?P<post>{_POST_WORDS})",
        rf"(?P<former>{_NAME})\b[^.;:!?]{{0,80}} (?P<takes>replaced|succeeded) as (?:{_WHOSE} )?"
        rf"(?P<post>{_POST_WORDS}) by (?P<name>{_NAME})",
        rf"(?:(?P<former>{_NAME})(?:['’]s| is| has) (?:gone|left|retired)[,;.] (?:and |so )?)?"
        rf"(?P<name>{_NAME}) {_DOES} (?:{_WHOSE} )?(?P<post>{_POST_WORDS})"
        r"(?P<now> (?:from )?now(?: on)?)?",
        rf"^\W*(?P<name>{_NAME})(?: \([^)\n]*\))?[*_]*: (?P<post>{_POST_WORDS})"
        r"(?=\s*(?:[,;.]|$))",
    )
)
_LABELS = (_HOLDERS[0], _HOLDERS[-1])
"""Forms with a colon, after or before which anything may stand."""
_TOOK = frozenset({"took over", "replaced", "succeeded"})
"""Without who had the post before, these may tell of long ago."""
_YEAR = lazy_regex(
    r"(?P<since>\b(?:since|started|joined) (?:\w+ ){0,3})?"
    r"(?<![\w.,])(?P<year>(?:1[5-9]|20)\d\d)(?!\w)",
    re.IGNORECASE,
)
_ANY_NAME = lazy_regex(_NAME)
_OF_NO_GROUP = (
    "address agenda agm annual assembly book chat contact conversation diary email forward "
    "general handover inbox journal letter list log mail meeting memo message minutes misc monthly "
    "new news newsletter note people phone report summary todo update weekly"
)
"""Words of titles that don't say what a post is a post of."""
_TIME_BEFORE = lazy_regex(
    rf"^(?:today|now|(?:(?:every|each|on|in|from|since|next|this) )?(?:{'|'.join(_CALENDAR)})s?) ",
    re.IGNORECASE,
)
"""May stand before a name and look like a part of it: ``Every Friday Ben does the dishes``."""


@lru_cache(maxsize=10_000)
def post_holders(sentence: str, year: int = 0, titles: str = "") -> tuple[PostHolder, ...]:
    """Return who has which post or task by a sentence; nothing if it doesn't say so plainly.

    Args:
        sentence: The sentence.
        year: When it was said.  What it says of another year, but for the next one, is past.
        titles: Those above it.
    """
    if len(sentence) > _LONGEST or "?" in sentence:
        return ()
    if _DOUBT_BEFORE.search(sentence) or _DOUBT_AFTER.search(sentence):
        return ()
    others = [said for said in _YEAR.finditer(sentence) if int(said["year"]) - year not in (0, 1)]
    is_past = not all(said["since"] for said in others)
    found = []
    for form in _HOLDERS:
        for match in form.finditer(sentence):
            said = match.groupdict()
            name = _TIME_BEFORE.sub("", re.sub(r"['’]s$", "", said["name"]), count=1)
            post = frozenset(terms(said["post"]))
            if post and _may_hold(name, is_label=form in _LABELS):
                former = said.get("former") or said.get("from") or ""
                took = said.get("past") or (said.get("takes") or "").lower() in _TOOK
                past = is_past or bool(took and not former)
                is_new = not (past or others) and any(
                    said.get(each) for each in ("former", "new", "now", "takes")
                )
                about = _about(sentence, titles) - post - set(terms(f"{name} {former}"))
                found.append(PostHolder(post, said["post"], name, former, is_new, past, about))
    return tuple(found)


def _may_hold(name: str, *, is_label: bool) -> bool:
    """Return whether a name may be that of a holder; beside a colon anything may stand."""
    first = name.split()[0]
    if is_label:
        return first in known_names().given
    return first not in _CALENDAR and first.casefold() not in stop_words("en") | _WHOEVER


def _about(sentence: str, titles: str) -> frozenset[str]:
    """Return the stems of titles, and of the names in a sentence that are not those of people."""
    start = len(sentence) - len(sentence.lstrip("-*# "))
    names = [
        found[0]
        for found in _ANY_NAME.finditer(sentence)
        if found.start() > start or " " in found[0]
    ]
    others = (name for name in names if not _is_of_person_or_common(name.split()[0]))
    stems = frozenset(terms("\n".join((titles, *others)))) - _stems_of_no_group()
    return frozenset(stem for stem in stems if not stem[0].isdigit())


def _is_of_person_or_common(word: str) -> bool:
    if word in known_names().given or word.rstrip(".") in TITLES:
        return True
    return word.lower() in stop_words("en") or is_common_word(word)


@cache
def _stems_of_no_group() -> frozenset[str]:
    return frozenset(terms(" ".join((_OF_NO_GROUP, *MONTHS, *WEEKDAYS))))
