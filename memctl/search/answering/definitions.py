"""Definitions: what a question like "What is Typer?" asks for, and which sentences give it.

Most sentences that have the word only use it, and so do lines of data: "Requires: typer".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_ASKS = re.compile(
    r"\W*(?:what(?:['’]s| is| are| was| were)(?: meant by)?|what does (?=[^?]* mean\b)"
    r"|define|was (?:ist|sind|war)|was bedeutet|qu['’]est-ce qu(?:e|['’])(?: c['’]est que)?"
    r"|qué (?:es|son)|(?:che )?cos['’]è|wat (?:is|zijn))"
    r"\s*(?P<article>(?:an?|eine?|une?|una?|een)\s+)?"
    r"(?P<subject>[^\s,;:?!][^,;:?!\n]*?)(?:\s+mean)?\s*[?!.]*",
    re.IGNORECASE,
)
_MOST_WORDS = 4
_POINTS_AT = re.compile(
    r"\b(?:the|th(?:is|at|ese|ose)|my|your|his|her|its|our|their|an?|of|on|in|at|for|to|from|with|by"
    r"|about|and|or|de[rnms]|das|dies\w*|mein\w*|unser\w*|von|für|mit|le|la|les|l['’]\w+"
    r"|mon|ma|mes|du|des|el|los|las|mi|del|il|lo|gli|het|mijn)\b",
    re.IGNORECASE,
)
"""In what is a description of one thing rather than the name of something."""
_IS = (
    r"(?:is|are|was|were|['’]s|means|stands for|refers to|ist|sind|war|bedeutet|est|sont|désigne"
    r"|es|son|significa|è|sono|betekent|zijn)"
)
_KIND = (
    r"(?:(?:now|also|still|basically|simply|just|really|auch|nun|einfach|aussi|también|anche|ook)\s+)?"
    r"(?:an?|the|one of|any|another|some|my|your|his|her|its|our|their|part of|short for|what|where"
    r"|eine?|d(?:er|ie|as)|mein\w*|unser\w*|une?|l[ea]s?|l['’]|notre|mon|una?|el|los|il|lo|een|de|het"
    r"|onze)(?:\b|(?<=['’]))"
)
_ARTICLE = r"(?:(?:an?|the|eine?|d(?:er|ie|as)|une?|l[ea]s?|una?|el|il|een|de|het)\s+)?"
_CALLED = r"(?:called|named|known as|genannt|namens|appelée?|llamad[oa]|chiamat[oa])"


@dataclass(frozen=True, slots=True)
class DefinitionQuestion:
    """A question for what something is, asked by its name."""

    defining: re.Pattern[str]
    telling: re.Pattern[str] | None
    """Of what is said of it, for what may be no name: "Lunch is at noon"."""

    def is_answered_by(self, sentence: str) -> bool | None:
        """Return whether a sentence says what it is, or has its name as its label.

        None where it is not known whether what the sentence says of it is asked for.
        """
        if self.defining.search(sentence):
            return True
        return None if self.telling and self.telling.search(sentence) else False


@lru_cache(maxsize=8)
def definition_question(question: str) -> DefinitionQuestion | None:
    """Return what a question asks to be defined; None for other questions."""
    asked = _ASKS.fullmatch(question.strip())
    if asked is None:
        return None
    subject = asked["subject"].strip("\"'`*_“”‘’«» ")
    words = [word for word in re.split(r"[\s_-]+", subject) if word]
    if not words or len(words) > _MOST_WORDS or _POINTS_AT.search(subject):
        return None
    name = r"[\s_-]+".join(map(re.escape, words))
    name = rf"{_ARTICLE}[*_`\"“”'’]*{name}(?:e?s)?[*_`\"“”'’]*"
    is_name = asked["article"] is not None or any(map(str.isupper, subject))
    return DefinitionQuestion(
        re.compile(
            rf"^\W*{name}(?:\s*\([^)]*\)|,[^,]*,)?"
            rf"(?:\s+{_IS}\s+{_KIND}|\s*(?:[:=|–—]|--?\s)\s*\S|,\s+{_KIND})"
            rf"|\b{_CALLED}\s+{name}(?![\w-])",
            re.IGNORECASE,
        ),
        None if is_name else re.compile(rf"^\W*{name}\s+{_IS}\s", re.IGNORECASE),
    )
