"""memctl demo: the whole tour, as a newcomer takes it, in a pipe and on files of one's own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def tour(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """The tour on the sample files."""
    folder = tmp_path_factory.mktemp("demo")
    return take_tour(folder)


def take_tour(temporary: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the demo with temporary files in a folder that pytest removes."""
    import os

    environ = {**os.environ, "TMPDIR": str(temporary), "MEMCTL_HOME": str(temporary / "own")}
    return subprocess.run(
        [sys.executable, "-m", "memctl", "demo", *arguments],
        capture_output=True, text=True, check=False, env=environ,
    )  # fmt: skip


def test_the_tour_ends_well_and_is_plain_text_in_a_pipe(
    tour: subprocess.CompletedProcess[str],
) -> None:
    assert tour.returncode == 0, tour.stderr
    assert tour.stderr == ""
    assert "\x1b" not in tour.stdout
    assert len(tour.stdout.splitlines()) <= 60


def test_it_shows_the_duplicate_and_the_failed_file_with_its_reason(
    tour: subprocess.CompletedProcess[str],
) -> None:
    assert re.search(r"= Copy of premises search\.md +known already", tour.stdout)
    assert re.search(r"! insurance offer\.pdf .*damaged.*\n.*hint: ", tour.stdout)
    place = Path(re.search(r"(\S+)/failed ", tour.stdout)[1])  # type: ignore[index]
    names = {path.name for path in (place / "failed").iterdir()}
    assert names == {"insurance offer.pdf", "insurance offer.pdf.reason.json"}
    assert "Copy of premises search.md" in {path.name for path in (place / "processed").iterdir()}


def test_it_shows_a_name_with_its_neighbours_and_the_way_to_a_farther_one(
    tour: subprocess.CompletedProcess[str],
) -> None:
    command = re.search(r'\$ memctl graph path "(.+)" "(.+)"\n', tour.stdout)
    assert command is not None
    name, farther = command.groups()
    (beside,) = re.findall(rf"^  {re.escape(name)}: (.+)$", tour.stdout, re.MULTILINE)
    assert farther not in beside
    steps = re.findall(r"^  \d\. (.+) → (.+) \(.+\)$", tour.stdout, re.MULTILINE)
    assert (steps[0][0], steps[-1][1]) == (name, farther)
    assert steps[0][1] == steps[1][0]
    assert steps[0][1] in beside


def test_it_shows_what_changed_with_both_files(
    tour: subprocess.CompletedProcess[str],
) -> None:
    (change,) = {
        line for line in tour.stdout.splitlines()
        if "change: " in line and "from 1 June 2026 to 15 June 2026" in line
    }  # fmt: skip
    assert "change: “lease for the Harbour Street workshop”: went from" in change
    assert "lease signed.md" in change
    assert "new start date.eml" in change


def test_it_answers_with_citations_and_says_what_it_does_not_know(
    tour: subprocess.CompletedProcess[str],
) -> None:
    assert "starts on 15 June 2026. [1]" in tour.stdout
    assert re.search(r"\[1\] .*new start date\.eml, characters \d+-\d+", tour.stdout)
    assert re.search(r"chess championship\?\"\nNot in memory\.", tour.stdout)


def test_its_export_is_read_back_by_duckdb(tour: subprocess.CompletedProcess[str]) -> None:
    assert re.search(r"read back by DuckDB: .*\d+ decision", tour.stdout)


def test_it_leaves_the_user_s_own_home_alone(
    tour: subprocess.CompletedProcess[str], tmp_path: Path
) -> None:
    place = re.search(r"rm -r (\S+)", tour.stdout)
    assert place is not None
    assert not (Path(place[1]).parent / "own").exists()


def test_files_of_one_s_own_stay_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "plan.md").write_text("We decided to launch Aurora on 12 May 2026 in Berlin.\n")
    done = take_tour(tmp_path, str(folder))
    assert done.returncode == 0, done.stderr
    assert "+ plan.md" in done.stdout
    assert [path.name for path in folder.iterdir()] == ["plan.md"]
    assert "Harbour Street" not in done.stdout


def test_a_folder_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    done = take_tour(tmp_path, "nowhere")
    assert done.returncode == 2
    assert done.stderr.startswith("error: no such folder: nowhere\nhint: ")
    assert list(tmp_path.iterdir()) == []


def test_its_insights_are_true(tour: subprocess.CompletedProcess[str]) -> None:
    assert "went from 1 June 2026 to 15 June 2026" in tour.stdout
    assert "2,700" not in tour.stdout, "the deposit of another building is no change"
    assert "no later word" not in tour.stdout, "a later list says that the permit is there"
