"""A knowledge base with a clock that tests set, the command line on its home, and skill files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_line import Run, runner
from set_clock import Clock

from memctl.config import load_config
from memctl.home import Home
from memctl.knowledge_base import KnowledgeBase
from memctl.upkeep.job_registry import ON_SKILLS
from memctl.upkeep.upkeep_job import Outcome, UpkeepContext

__all__ = ["Clock", "Run", "Write", "run_job"]

TABLES = (
    "skills", "skill_versions", "skill_files", "skill_agents", "skill_usage", "skill_proposals",
    "skill_conflicts", "skill_repairs",
)  # fmt: skip


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, clock: Clock) -> Home:
    made = Home(load_config({"home": str(tmp_path_factory.mktemp("skills"))}, {}), clock)
    made.create("default")
    return made


@pytest.fixture
def kb(home: Home) -> Iterator[KnowledgeBase]:
    """The knowledge base of the module, without any skill."""
    with home.open("default") as base:
        for name in TABLES:
            with base.store.ledger.transaction() as connection:
                connection.execute(f"DELETE FROM {name}")
        yield base


Write = Callable[..., Path]


@pytest.fixture
def memctl(
    kb: KnowledgeBase,
    home: Home,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> Run:
    """Run a command as in a pipe, with ``stdin`` as standard input."""
    return runner(home.config.home, monkeypatch, capsysbinary)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a SKILL.md folder below ``skills`` and return its path."""

    def folder(
        name: str, description: str, body: str = "Do it with care.", **metadata: str
    ) -> Path:
        path = tmp_path / "skills" / name.lower().replace(" ", "_")
        path.mkdir(parents=True, exist_ok=True)
        lines = ["---", f"name: {json.dumps(name)}", f"description: {json.dumps(description)}"]
        if metadata:
            lines += ["metadata:", *(f"  {k}: {json.dumps(v)}" for k, v in metadata.items())]
        lines += ["---", "", body, ""]
        (path / "SKILL.md").write_text("\n".join(lines), encoding="utf-8")
        return path

    return folder


def run_job(kb: KnowledgeBase, name: str) -> Outcome:
    """Run a job on skills, which upkeep runs only where there are any."""
    (job,) = (each for each in ON_SKILLS if each.name == name)
    return job.run(UpkeepContext(kb, Home(kb.resources.program_config), kb.clock()))
