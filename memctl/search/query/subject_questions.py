"""Questions for what something is or does, asked by its name: "What is Typer?".

Most sentences that have the name only use it, and so do lines of data: "Requires: typer".  Others
are about another thing of the same kind, which only a number tells apart: "van 3".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from msgspec import Struct

from memctl.language.date_mentions import date_spans
from memctl.language.term_analysis import plain_form, query_terms
from memctl.language.word_lists import is_common_word, known_names, load_language
from memctl.patterns import lazy_regex

_WHAT_IT_IS = (
    r"(?:what(?:['’]s| is| are| was| were)(?: meant by)?|define|was (?:ist|sind|war)|was bedeutet"
    r"|qu['’]est-ce qu(?:e|['’])(?: c['’]est que)?|qué (?:es|son)|(?:che )?cos['’]è"
    r"|wat (?:is|zijn))\s*(?P<subject>\S.*)",
    r"what (?:does|do) (?P<subject>\S.*) mean",
)
_WHAT_IT_STANDS_FOR = (
    r"what (?:does|do) (?:the )?(?P<subject>\S.*) stand for",
    r"what(?:['’]s| is) (?:the )?(?P<subject>\S.*)"
    r" (?:short for|an (?:acronym|abbreviation) (?:for|of))",
    r"wofür steht (?P<subject>\S.*)",
    r"que signifie (?:le sigle )?(?P<subject>\S.*)",
)
_WHAT_IT_DOES = (
    r"what (?:does|do) (?P<subject>\S.*) do",
    r"how (?:does|do) (?P<subject>\S.*) work",
    r"what(?:['’]s| is| are) (?P<subject>\S.*?) (?:used |good )?for",
    r"(?:what(?:['’]s| is) the (?:purpose|point|use|function|role) of|was macht"
    r"|wie funktioniert|wozu (?:dient|ist)|à quoi sert|que fait|comment fonctionne|para qué sirve"
    r"|qué hace) (?P<subject>\S.*)",
)
_KIND_OF_THING = lazy_regex(
    r"(?:an?|eine?|une?|una?|een)\s+(?P<subject>.*?)(?:\s+(?:in|for|at|bei|en|dans|per)\s+\S+)?",
    re.IGNORECASE,
)
_MOST_WORDS = 4
_POINTS_AT = lazy_regex(
    r"\b(?:the|th(?:is|at|ese|ose)|my|your|his|her|its|our|their|an?|of|on|in|at|for|to|from|with|by"
    r"|about|and|or|de[rnms]|das|dies\w*|mein\w*|unser\w*|von|für|mit|le|la|les|l['’]\w+"
    r"|mon|ma|mes|du|des|el|los|las|mi|del|il|lo|gli|het|mijn"
    r"|i|we|you|they|he|she|it|people|everyone|everybody)\b|['’]s\b|s['’](?!\w)",
    re.IGNORECASE,
)
"""In what is a description of one thing rather than the name of something."""
_LONGEST = 120
"""Characters of such a question."""
_IS = (
    r"(?:is|are|was|were|['’]s|means|stands for|refers to|ist|sind|war|bedeutet|est|sont|désigne"
    r"|es|son|significa|è|sono|betekent|zijn)"
)
_ADVERB = (
    r"(?:now|also|still|just|basically|simply|really|primarily|mainly|essentially|mostly|currently"
    r"|formerly|originally|officially|usually|typically|normally|generally|commonly|often"
    r"|auch|nun|einfach|aussi|también|anche|ook)"
)
_ANY_OF_A_KIND = rf"(?:{_ADVERB}\s+)?(?:an?|one of|any|eine?|une?|una?|een)\b"
_KIND = (
    rf"(?:{_ADVERB}\s+)?"
    r"(?:an?|the|[\w.-]+['’]s|one of|any|another|some|my|your|his|her|its|our|their|part of"
    r"|short for|what|where"
    r"|eine?|d(?:er|ie|as)|mein\w*|unser\w*|une?|l[ea]s?|l['’]|notre|mon|una?|el|los|il|lo|een|de|het"
    r"|onze)(?:\b|(?<=['’]))"
)
_ARTICLE = r"(?:(?:an?|the|eine?|d(?:er|ie|as)|une?|l[ea]s?|una?|el|il|een|de|het)\s+)?"
_NUMBER = r"(?:\d+(?:\.\d+)*\.?\s+)?"
"""Of a chapter or section."""
_CALLED = r"(?:called|named|known as|genannt|namens|appelée?|llamad[oa]|chiamat[oa])"

_USED = r"(?:us(?:e[sd]?|ing)|nutzen|benutzen|verwenden|utilis(?:e|ons|ent)|usamos)"
_SORT = (
    r"(?:\s+(?:system|tool|program|command|option|file|format|service|package|project|library|app"
    r"|protocol|method|function|class|module|team|group|board))?"
)
_FOR = r"(?:for|to|as|by|für|zum|zur|als|um|pour|comme|para)\b"
_OPTION = lazy_regex(r"(?:the )?(?P<name>--?[a-zA-Z][\w-]*)(?:=\S*)?(?: (?:option|flag|switch))?")
_OPTION_NAME = lazy_regex(
    r"(?<![\w-])(?:--[a-zA-Z][\w-]*|[a-zA-Z]\w*_\w[\w.]*|[a-zA-Z]\w*(?:\.\w+)+)"
)
_FILE_NAME = lazy_regex(r".*\.(?:ya?ml|json|toml|ini|conf|cfg|txt|md|py|sh|xml|html?|csv|log|env)")
_VALUE_OF_OPTION = lazy_regex(r"\b(?:defaults?|minimum|maximum|range|unit)\b", re.IGNORECASE)
_VALUE = r"=[^\s,:]+"
_BEHIND_OPTION = (
    rf"(?:{_VALUE})?"
    rf"(?:[ ,]+(?:--?\w[\w-]*(?:{_VALUE})?|<[^>\n]*>|\[[^\]\n]*\]|\{{[^}}\n]*\}}|[A-Z][A-Z_]+))*"
)
"""In a label: the values of an option, its default and its other name."""
_ACRONYM = lazy_regex(r"(?:the )?(?P<letters>[A-Z]{2,7})s?")
_SMALL_WORD = r"(?:(?:of|the|and|for|to|in|on|by|with)[\s-]++)?"
_STANDS_FOR = r"(?:stands? for|(?:is|are) short for|means?|steht für|signifie|significa)\b"
_MOST_BETWEEN = 45
"""Characters between an acronym and what it stands for."""
_SENTENCE_END = lazy_regex(r"(?<=[.!?:])\s+|\n+")
CONTINUES = lazy_regex(
    r"\W*(?:it|they|this|these|he|she|es|er|sie|dies|il|elle|ils|elles|ce|ello|esto)\b",
    re.IGNORECASE,
)
"""How a sentence begins that speaks of what the one before it names."""


_IDENTIFIER = r"(?:[a-z]{1,2}-?)?\d+(?:[.]\d+)*[a-z]?(?![\w.,]*\d|[a-z])"
_NUMBERED = (
    r"(?:\W{0,3}(?:no\.?|nr\.?|number))?\W{0,3}"
    rf"(?P<numbers>{_IDENTIFIER}(?:(?:\s?(?:,|&|-|–|\b(?:and|or|to|und|oder|bis|et)\b)\s?)+"
    rf"{_IDENTIFIER})*)"
)
_NUMBERED_THING = lazy_regex(rf"(?<![\w-])(?P<kind>[^\W\d_]{{3,}}){_NUMBERED}", re.IGNORECASE)
_ONE_NUMBER = lazy_regex(_IDENTIFIER, re.IGNORECASE)
_YEAR = lazy_regex(r"(?:19|20)\d\d")
_RANGE = lazy_regex(r"(\d+)\s?(?:-|–|to|bis)\s?(\d+)", re.IGNORECASE)


class NumberedThing(Struct, frozen=True):
    """A thing that only its number tells from others of its kind: "van 3"."""

    kind: str
    number: str

    def is_in(self, text: str) -> bool | None:
        """Return whether a text has it; None where it has no numbered thing of that kind."""
        kind = re.escape(self.kind.removesuffix("s"))
        found = list(re.finditer(rf"(?<![\w-]){kind}(?:e?s)?{_NUMBERED}", text, re.IGNORECASE))
        return any(self._is_among(match["numbers"].lower()) for match in found) if found else None

    def _is_among(self, numbers: str) -> bool:
        """Return whether it has one of some numbers, or one within a range of them."""
        if any(
            f"{each}.".removeprefix("v").startswith(f"{self.number}.".removeprefix("v"))
            for each in _ONE_NUMBER.findall(numbers)
        ):
            return True
        return self.number.isdecimal() and any(
            int(first) <= int(self.number) <= int(last) for first, last in _RANGE.findall(numbers)
        )


@lru_cache(maxsize=8)
def numbered_things(question: str) -> tuple[NumberedThing, ...]:
    """Return the things that a question names by their kind and number, but no dates."""
    text = without_dates(question)
    return tuple(
        NumberedThing(match["kind"].lower(), number.lower())
        for match in _NUMBERED_THING.finditer(text)
        if query_terms(match["kind"], ("en",))
        for number in _ONE_NUMBER.findall(match["numbers"])
        if not _YEAR.fullmatch(number)
    )


_WORD = lazy_regex(r"[^\W\d_][\w-]*(?:['’][^\W\d_]+)?")
_FULL_NAME_LENGTHS = (2, 3)


def names_another(question: str, text: str) -> bool:
    """Return whether a text has only one part of a full name of the question, beside another one.

    Anna Holt is not Anna Berg, nor is Peter Berg; "Anna" alone may be.
    """
    return any(_has_other_bearer(_words(text), name) for name in _full_names(question))


def lacks_full_name(question: str, text: str) -> bool:
    """Return whether a question has a full name of which a text has no part."""
    names = _full_names(question)
    words = {plain_form(word) for word, _, _ in _words(text)} if names else set[str]()
    return any(words.isdisjoint(name) for name in names)


def _words(text: str) -> list[tuple[str, int, int]]:
    """Return the words of a text, without the ending of a genitive, and where they stand."""
    return [
        (re.sub(r"['’]s$", "", match[0]), match.start(), match.end())
        for match in _WORD.finditer(text)
    ]


@lru_cache(maxsize=8)
def _full_names(question: str) -> tuple[tuple[str, ...], ...]:
    """Return the names of two or three words in a question, in small letters."""
    runs: list[list[str]] = [[]]
    ended = -1
    for word, start, end in _words(question):
        if start != ended + 1 or question[ended:start] != " ":
            runs.append([])
        if word[0].isupper() and not (start == 0 and is_common_word(word)):
            runs[-1].append(plain_form(word))
        else:
            runs.append([])
        ended = end
    return tuple(tuple(run) for run in runs if len(run) in _FULL_NAME_LENGTHS)


def _has_other_bearer(words: Sequence[tuple[str, int, int]], name: Sequence[str]) -> bool:
    plain_words = [plain_form(word) for word, _, _ in words]
    if frozenset(plain_words).issuperset(name):
        return False

    def is_other(at: int, neighbour: int) -> bool:
        """Return whether another name stands beside a word."""
        if not 0 <= neighbour < len(words):
            return False
        (_, _, end), (_, start, _) = sorted((words[at], words[neighbour]), key=lambda each: each[1])
        word = words[neighbour][0]
        plain = plain_words[neighbour]
        return (
            start == end + 1
            and word[0].isupper()
            and not is_common_word(word)
            and (neighbour > at or word in known_names().given)  # not "Ask Berg"
            and not any(part.startswith(plain) or plain.startswith(part) for part in name)
        )

    beside_other = [
        is_other(at, at + 1 if plain == name[0] else at - 1)
        for at, plain in enumerate(plain_words)
        if plain in (name[0], name[-1])
    ]
    return bool(beside_other) and all(beside_other)


_IN_BETWEEN = frozenset({"in", "on", "at", "the"})


def names_opposite(question: str, text: str) -> bool:
    """Return whether a text has the opposite of a word of the question, and not the word.

    Of modifiers, "left" and "right", only if both stand before the same word or after the same
    preposition, or the text is labelled with one.
    """
    asked, said = _plain_words(question), _plain_words(text)
    language = load_language("en")
    has_asked, has_said = frozenset(asked), frozenset(said)
    for pair in (*language.opposites, *language.opposite_modifiers):
        for one, other in (pair, pair[::-1]):
            ones, others = _forms(one), _forms(other)
            is_opposed = (
                not has_asked.isdisjoint(ones)
                and not has_said.isdisjoint(others)
                and has_asked.isdisjoint(others)
                and has_said.isdisjoint(ones)
            )
            if is_opposed and (
                pair in language.opposites or _modify_same(asked, one, said, other, text)
            ):
                return True
    return _says_opposite_deed(question, text)


def _plain_words(text: str) -> list[str]:
    return [word.lower().removesuffix("s") for word, _, _ in _words(text)]


def _forms(words: str) -> frozenset[str]:
    return frozenset(each.removesuffix("s") for each in words.split("|"))


def _modify_same(
    asked: Sequence[str], one: str, said: Sequence[str], other: str, text: str
) -> bool:
    """Return whether two words of two texts stand at like places."""

    def places(words: Sequence[str], wanted: str) -> set[tuple[str, ...]]:
        """Return what stands just before a word, and what after it, wherever it stands."""
        padded = ["", "", *words, ""]
        found = [at for at, word in enumerate(padded) if word == wanted]
        after = {("", padded[at + 1]) for at in found if padded[at + 1]}
        before = {
            (padded[at - 2], padded[at - 1])
            for at in found
            if {padded[at - 2], padded[at - 1]} <= _IN_BETWEEN
        }
        return after | before

    if ("", "one") in places(asked, one):  # the new one
        return any(noun in asked for _, noun in places(said, other))
    if not places(asked, one).isdisjoint(places(said, other)):
        return True
    return re.search(rf"(?:^|\|)\W*{other}\s*:", text, re.IGNORECASE) is not None


_I_OR_WE = r"\b(?:i|we)(?:['’](?:ve|d))? (?:(?:have|had|just|then|finally) )?"
_BY_OTHERS = lazy_regex(
    r"\bto (?:us|me)\b|\b(?:by|from) (?!(?:us|me|myself|ourselves)\b)", re.IGNORECASE
)
"""What was sold by others, or to us, may have been bought by us."""
_OPPOSITE_DEEDS = (
    ("buy|bought", "sold|sell"),
    ("receive|received|get|got", "sent"),
    ("borrow|borrowed", "lent"),
)


def _says_opposite_deed(question: str, text: str) -> bool:
    """Return whether a text says that I or we did the opposite of what a question asks of me or us.

    "We sold it to Ben" says what Ben bought, but not when we bought it.
    """
    for pair in _OPPOSITE_DEEDS:
        for one, other in (pair, pair[::-1]):
            asks = rf"(?:{_I_OR_WE}|\bwhen (?:was|were)\b.* )(?:{one})\b"
            says = rf"{_I_OR_WE}(?:{other})\b"
            if not _BY_OTHERS.search(text):
                says += rf"|\b(?:was|were|been) (?:{other})\b"
            if (
                re.search(asks, question, re.IGNORECASE)
                and re.search(says, text, re.IGNORECASE)
                and not re.search(rf"\b(?:{one})\b", text, re.IGNORECASE)
            ):
                return True
    return False


def without_dates(text: str) -> str:
    """Return a text with a space in the place of each date."""
    for span in reversed(date_spans(text)):
        text = f"{text[: span.start]} {text[span.end :]}"
    return text


class SubjectQuestion(Struct, frozen=True):
    """A question for what something is or does, asked by its name."""

    answering: re.Pattern[str]
    """What says what it is, or what it is used for."""
    telling: re.Pattern[str] | None
    """What tells something of it that may be what is asked for: "Lunch is at noon"."""
    title: re.Pattern[str]
    """The title of a text that is about it."""
    asks_what_it_does: bool = False
    """What stands first under its title says that."""
    asks_for_words: bool = False
    """What has an acronym written out answers, whatever else it says."""

    def is_answered_by(
        self, sentence: str, titles: Iterable[str] = (), before: str = ""
    ) -> bool | None:
        """Return whether a sentence says what is asked.

        None where it may: it tells something of the thing, or stands in a text about it.

        Args:
            sentence: The sentence.
            titles: What stands above it; headings as paths.
            before: The sentence before it.
        """
        if self.answering.search(sentence):
            return True
        if CONTINUES.match(sentence) and self.is_answered_by(before) is not False:
            return None
        about = [name for each in titles if self.title.fullmatch(name := each.rpartition(" > ")[2])]
        if about:
            above = before.strip().partition("\n")[0].strip("# ")
            return True if self.asks_what_it_does and above in about else None
        is_code = sentence.rstrip().endswith((";", "{"))
        tells = self.telling is not None and self.telling.search(sentence) is not None
        return None if tells and not is_code else False

    def is_defined_in(self, text: str) -> bool:
        """Return whether a sentence of a text says what it is, or what it is used for."""
        return any(map(self.answering.search, _SENTENCE_END.split(text)))


@lru_cache(maxsize=8)
def subject_question(question: str) -> SubjectQuestion | None:
    """Return what a question asks of something by its name; None for other questions."""
    if len(question) > _LONGEST:
        return None
    if (stands_for := _subject_of(_WHAT_IT_STANDS_FOR, question)) and (
        written_out := _written_out(stands_for)
    ):
        says = rf"\b{re.escape(stands_for)}\W+{_STANDS_FOR}"
        return SubjectQuestion(
            re.compile(f"{written_out}|{says}", re.IGNORECASE),
            None,
            re.compile(r"(?!)"),
            asks_for_words=True,
        )
    does = _subject_of(_WHAT_IT_DOES, question)
    subject = does or _subject_of(_WHAT_IT_IS, question)
    if option := _OPTION.fullmatch(subject):
        return _of_option(option["name"])
    kind = _KIND_OF_THING.fullmatch(subject)
    acronym = _ACRONYM.fullmatch(subject)
    has_article = subject.startswith("the ")
    subject = kind["subject"] if kind else acronym["letters"] if acronym else subject
    words = [word for word in re.split(r"[\s_-]+", subject) if word]
    is_name = kind is not None or all(word[0].isupper() for word in subject.split())
    if not words or len(words) > _MOST_WORDS or _POINTS_AT.search(subject):
        return None
    if " " in subject and not (is_name or does):  # "gate code" asks for a value, not what it is
        return None
    plain = r"[\s_-]+".join(map(re.escape, words))
    name = rf"{_ARTICLE}[*_`\"“”'’]*{plain}(?:e?s)?[*_`\"“”'’]*"
    label_end, words_of_value = r":\s|[–—]|--?\s", r"\s*[^\W\d_][^\n]"
    is_said = rf"^\W*{name}{_SORT}(?:\s*\([^)]*\)|,[^,]*,)?\s+{_IS}\s+"
    title = re.compile(rf"{_NUMBER}{_ARTICLE}{plain}(?:e?s)?(?:\.\w{{1,4}})?", re.IGNORECASE)
    if does:
        telling = rf"^\W*{name}\s+\w|\b{_USED} {name} {_FOR}|\b{name}\s+(?:\w+s|was|are)\b"
        saying = (
            rf"{is_said}{_ANY_OF_A_KIND}|^\W*{name}\s*(?:{label_end}){words_of_value}"
            rf"|{is_said}{_USED}\s+{_FOR}"
        )
        return SubjectQuestion(
            re.compile(saying, re.IGNORECASE),
            re.compile(telling, re.IGNORECASE),
            title,
            asks_what_it_does=True,
        )
    called = _CALLED.replace("named|", "") if kind else _CALLED  # a folder named target
    defined = (
        rf"{is_said}(?:{_KIND}|{_USED}\s+{_FOR})|^\W*{name},\s+{_KIND}"
        rf"|^\W*{name}\s*(?:{label_end}|=){words_of_value}|\b{called}\s+{name}(?![\w-]|\.\w)"
    )
    if acronym:
        defined = f"{defined}|{_written_out(subject)}"
    statement = re.compile(rf"^\W*{name}(?:\s+{_IS}\s|\s*[:=–—]\s*[\w€$£+])", re.IGNORECASE)
    return SubjectQuestion(
        re.compile(defined, re.IGNORECASE),
        None if is_name and not has_article else statement,
        title,
    )


def option_of_value(question: str) -> str:
    """Return the option whose default or limit a question asks for; "" where it asks for none.

    What is said of a default is said of the option that it stands under.
    """
    names = set(_OPTION_NAME.findall(question)) if _VALUE_OF_OPTION.search(question) else set()
    name = names.pop() if len(names) == 1 else ""
    return "" if _FILE_NAME.fullmatch(name) else name


def _written_out(acronym: str) -> str:
    """Return what matches an acronym near the words whose initials it is; "" for another word.

    The idea is that of Schwartz and Hearst, "A simple algorithm for identifying abbreviation
    definitions in biomedical text" (2003).
    """
    found = _ACRONYM.fullmatch(acronym)
    if found is None:
        return ""
    letters = found["letters"]
    initials = "(?-i:{})" if len(letters) == 2 else "{}"  # "he ran HR" is no human resources
    words = rf"[\s-]++{_SMALL_WORD}".join(rf"{initials.format(each)}\w*+" for each in letters)
    between, short = rf"[^.\n]{{0,{_MOST_BETWEEN}}}?", rf"\b(?-i:{letters})s?\b"
    has_it = rf"\A(?s:(?=.*(?-i:{letters})).*?)"  # without it, the words need not be looked for
    return rf"{has_it}(?:\b{words}\b{between}{short}|{short}{between}\b{words}\b)"


def _of_option(name: str) -> SubjectQuestion:
    written = rf"(?<![\w-]){re.escape(name)}(?![\w-])"
    other = rf"--?\w[\w-]*(?:{_VALUE}| <[^>\n]*>)?,?\s+"
    return SubjectQuestion(
        re.compile(rf"^\W{{0,2}}(?:{other})?{written}{_BEHIND_OPTION}\s*:\s+\S"),
        re.compile(rf"(?:^\W{{0,2}}|(?i:if|when|with|using|use|unless) ){written}"),
        re.compile(rf"(?:.*[\s,])?{written}.*"),
        asks_what_it_does=True,
    )


def _subject_of(forms: Iterable[str], question: str) -> str:
    """Return what a question of one of some forms is about; "" where it has none of them."""
    text = question.strip().strip("¿?!. ")
    found = (re.fullmatch(form, text, re.IGNORECASE) for form in forms)
    subject = next((match["subject"] for match in found if match), "")
    return subject.strip("\"'`*_“”‘’«» ")
