"""Every language is one file: whatever is analysed by language follows from it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import memctl
from memctl.language.identification import identify_language
from memctl.language.word_lists import all_languages

_ESPERANTO = {
    "name": "Esperanto",
    "stop_words": ["la kaj estas de en mi ne ke ĝi kun por"],
    "abbreviations": ["ekz"],
    "months": [
        ["januaro"], ["februaro"], ["marto"], ["aprilo"], ["majo"], ["junio"], ["julio"],
        ["aŭgusto"], ["septembro"], ["oktobro"], ["novembro"], ["decembro"],
    ],
    "weekdays": [
        ["lundo"], ["mardo"], ["merkredo"], ["ĵaŭdo"], ["vendredo"], ["sabato"], ["dimanĉo"],
    ],
    "bounds": {"since": ["ekde"]},
}  # fmt: skip

_LOOK = """
import json
from datetime import date
from memctl.language.date_mentions import date_spans
from memctl.language.sentence_splitting import split_sentences
from memctl.language.term_analysis import terms
from memctl.language.time_periods import periods
print(json.dumps({
    "terms": terms("la domo kaj la hundo", "eo"),
    "dates": [span.iso for span in date_spans("Ni venos la 3 aŭgusto 2026.")],
    "since": [period.first.isoformat() for period in periods("ekde Majo", date(2026, 7, 1))],
    "sentences": len(split_sentences("Multaj bestoj, ekz. hundoj. Kaj katoj.")),
}))
"""


def test_adding_a_language_is_adding_one_file(tmp_path: Path) -> None:
    shutil.copytree(Path(memctl.__file__).parent, tmp_path / "memctl")
    added = tmp_path / "memctl" / "language" / "languages" / "eo.json"
    added.write_text(json.dumps(_ESPERANTO), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", _LOOK],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PATH": "", "PYTHONUTF8": "1"},
    )
    assert json.loads(done.stdout) == {
        "terms": ["domo", "hundo"],
        "dates": ["2026-08-03"],
        "since": ["2026-05-01"],
        "sentences": 2,
    }


def test_every_language_is_complete_as_far_as_it_goes() -> None:
    for language in all_languages():
        assert language.name
        assert language.stemmer or language.stop_words
        assert len(language.months) in (0, 12)
        assert len(language.weekdays) in (0, 7)
        assert len(language.seasons) in (0, 4)


def test_short_messages_are_told_apart() -> None:
    said = {
        "Komme etwas später, der Zug hat Verspätung": "de",
        "On se retrouve devant la gare demain soir": "fr",
        "Nos vemos mañana delante de la estación": "es",
        "Ci vediamo domani davanti alla stazione": "it",
        "Spotykamy się jutro przed dworcem": "pl",
        "Yarın istasyonun önünde buluşuyoruz": "tr",
        "Мы встретимся завтра утром возле вокзала": "ru",
        "明日の朝、駅の前で会いましょう": "ja",
        "내일 아침에 역 앞에서 만나요": "ko",
        "See you tomorrow in front of the station": "en",
    }
    assert {text: identify_language(text) for text in said} == said
    assert identify_language("") == identify_language("12:30") == identify_language("ok") == ""


_LOAD_NOTHING = """
import sys
from memctl.language.identification import identify_language
print(*map(identify_language, sys.argv[1:]), 'py3langid' in sys.modules)
"""


def test_plain_english_is_told_without_loading_the_classifier() -> None:
    sentences = [
        "We will meet again in front of the station tomorrow.",
        "Directed in and was marine reserved praw clo factors",
        "Bought tickets for seat 12 to Lund",
    ]
    command = [sys.executable, "-c", _LOAD_NOTHING, *sentences]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["en", "en", "en", "False"]


def test_words_that_english_shares_with_another_language_do_not_make_a_text_english() -> None:
    said = {
        "Er was veel drukte in de stad": "nl",
        "In casa di un amico a Roma": "it",
        "To jest bardzo dobry pomysł": "pl",
        "Hun er klar for en ny jobb": "no",
    }
    assert {text: identify_language(text) for text in said} == said
