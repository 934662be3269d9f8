"""The settings for well-known servers that the documentation shows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from memctl.config import load_config
from memctl.models.model_status import task_models

PAGE = Path(__file__).parents[1] / "docs" / "models.md"
SERVERS = ("OpenAI", "Ollama", "vLLM", "llama.cpp", "LM Studio")


def snippets() -> dict[str, str]:
    """Return each block of settings by the server that the line above it begins with."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.findall(r"^([^\n]+):\n\n```toml\n(.*?)```", text, re.MULTILINE | re.DOTALL)
    return {next(name for name in SERVERS if above.startswith(name)): toml for above, toml in found}


def test_there_is_one_for_each_server() -> None:
    assert tuple(snippets()) == SERVERS


@pytest.mark.parametrize("server", SERVERS)
def test_it_can_be_used_as_it_stands(server: str, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(snippets()[server])
    shown = tomllib.loads(snippets()[server])
    config = load_config({"config": str(path), "home": str(tmp_path)}, environ={})
    assert config.endpoint.base_url == shown["endpoint"]["base_url"]
    found = {duty.task: duty for duty in task_models(config) if duty.model}
    named = {task for task in shown["models"] if not task.endswith("_url")}
    assert found.keys() == named
    assert [duty.problem for duty in found.values() if duty.problem] == []
