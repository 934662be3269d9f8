"""Every command can be found out about, at once and without loading what it does not need."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from command_tree import commands

from memctl.cli import main
from memctl.cli.main import GROUPS, SUMMARIES, CommandGroup, with_groups
from memctl.cli.reference import reference, summaries

DOCS = Path(__file__).parents[2] / "docs"
HEAVY = [
    "lance",
    "lancedb",
    "pyarrow",
    "duckdb",
    "numpy",
    "openai",
    "pypdf",
    "PIL",
    "yaml",
    "rich",
    "networkx",
]


def test_there_are_commands_to_look_at() -> None:
    assert {"ingest", "query", "kb create", "memory edit"} <= commands().keys()


@pytest.mark.parametrize("words", commands())
def test_every_command_says_what_it_does_in_one_line_and_shows_an_example(words: str) -> None:
    help_text = commands()[words].help
    first = help_text.partition("\n")[0]
    assert first.endswith(".")
    assert len(first) <= 62, "longer lines are cut off in the list of commands"
    assert f"  memctl {words}" in help_text or f"| memctl {words}" in help_text


@pytest.mark.parametrize("words", commands())
def test_every_option_says_what_it_does(words: str) -> None:
    for parameter in commands()[words].params:
        assert parameter.help, f"{words} {parameter.name}"


def test_the_command_reference_is_up_to_date() -> None:
    page = (DOCS / "commands.md").read_text(encoding="utf-8")
    assert page == reference(), "python -m memctl.cli.reference > docs/commands.md"


def test_the_list_of_commands_is_up_to_date() -> None:
    listed = (Path(main.__file__).parent / SUMMARIES).read_text(encoding="utf-8")
    assert listed == summaries(), (
        "python -m memctl.cli.reference summaries > memctl/cli/summaries.json"
    )


def test_the_list_of_commands_imports_none() -> None:
    code = (
        "import sys; from memctl.cli.main import run; run(['--help'])\n"
        "print([each for each in sys.modules if each.startswith('memctl.cli.commands')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_command_reference_has_every_command() -> None:
    headings = set(re.findall(r"^##+ memctl (.+)$", reference(), re.MULTILINE))
    assert commands().keys() <= headings


@pytest.mark.parametrize("flag", ["--help", "--version", "query --help", "kb --help"])
def test_help_loads_nothing_heavy(flag: str) -> None:
    code = (
        "import sys, json; from memctl.cli.main import run\n"
        f"code = run({flag.split()!r})\n"
        "print(json.dumps([code, sorted({name.partition('.')[0] for name in sys.modules})]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    exit_code, loaded = json.loads(done.stdout.splitlines()[-1])
    assert exit_code == 0
    assert not set(HEAVY) & set(loaded)
    assert "memctl.records" not in loaded


@pytest.mark.parametrize("words", ["demo", "ingest", "document reprocess"])
def test_what_may_be_left_out_stands_in_one_pair_of_brackets(words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "memctl", *words.split(), "--help"],
        capture_output=True, check=True, text=True,
    )  # fmt: skip
    usage = done.stdout.splitlines()[0]
    assert usage.count("[") == 2
    assert "[OPTIONS] [" in usage


def test_a_group_without_a_command_shows_its_help() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "memctl", "kb"], capture_output=True, check=False, text=True
    )
    assert done.returncode == 2
    assert "create" in done.stdout + done.stderr


@pytest.mark.parametrize("group", GROUPS, ids=[each.words[0] for each in GROUPS])
def test_the_words_of_a_group_are_those_that_its_module_adds(group: CommandGroup) -> None:
    alone = typer.main.get_command(with_groups((group,)))
    assert list(getattr(alone, "commands", {})) == list(group.words)


def test_text_and_numbers_in_options_are_read_without_pydantic(tmp_path: Path) -> None:
    code = (
        "import sys; from memctl.cli.main import run\n"
        "code = run(['kb', 'list', '-n', '3', '-o', 'json'])\n"
        "print(code, 'pydantic' in sys.modules)\n"
        "print(run(['memory', 'list', '--limit', 'many']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"MEMCTL_HOME": str(tmp_path)},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert done.stdout.splitlines()[-2:] == ["0 False", "2"]
    assert "not a whole number" in done.stderr


def test_no_garbage_is_looked_for_when_a_command_ends(tmp_path: Path) -> None:
    code = (
        "import atexit, gc; from memctl.__main__ import main\n"
        "atexit.register(lambda: print(gc.isenabled(), gc.get_freeze_count() > 0))\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "kb", "list"],
        env=os.environ | {"MEMCTL_HOME": str(tmp_path)},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "False True"


def test_a_command_imports_no_other_command(tmp_path: Path) -> None:
    code = (
        "import sys; from memctl.cli.main import run\n"
        "run(['kb', 'list'])\n"
        "names = [each.removeprefix('memctl.cli.commands.') for each in sys.modules"
        " if each.startswith('memctl.cli.commands.')]\n"
        "print(sorted(each for each in names if '.' in each))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"MEMCTL_HOME": str(tmp_path)},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "['administration.kb', 'administration.merge']"


def test_a_query_imports_nothing_that_takes_in_or_changes_documents(tmp_path: Path) -> None:
    code = (
        "import sys; from memctl.cli.main import run\n"
        "code = run(sys.argv[1:])\n"
        "names = {*sys.modules, *('.'.join(each.split('.')[:2]) for each in sys.modules)}\n"
        "print(code, sorted(names & {'memctl.ingest', 'memctl.readers', 'memctl.consolidation',"
        " 'memctl.search.agentic_search', 'memctl.models.providers', 'pyarrow', 'numpy'}))"
    )

    def imported(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            env=os.environ | {"MEMCTL_HOME": str(tmp_path)},
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        return done.stdout.splitlines()[-1]

    assert imported("query", "Who sails?", "--kb", "none") == "10 []"
    imported("kb", "create", "boats")
    assert imported("query", "Who sails?", "--kb", "boats") == "0 ['numpy', 'pyarrow']"
