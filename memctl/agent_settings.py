"""What the file of an agent says: its model, its tools, and how it uses memory.

A setting is declared once, as a field; the file may leave out all but ``agent_id``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from msgspec import Struct, field

from memctl.config import NamespaceSettings
from memctl.errors import ConfigError
from memctl.identity import checked_name
from memctl.kb_settings import own_models
from memctl.literals import REFERRING_WORDS, RESOURCES, OwnTask
from memctl.paths import display_path
from memctl.validation import Rule, check_keys, check_value, read_toml, setting_keys

_VECTORS = "lancedb"


class CompressionSettings(Struct, frozen=True):
    """When the earlier turns of a conversation are summarised."""

    enabled: Annotated[bool, Rule("whether long conversations are summarised")] = True
    threshold_tokens: Annotated[
        int, Rule("tokens from which on a conversation is summarised", low=100, high=10_000_000)
    ] = 8000
    recent_messages_to_keep: Annotated[
        int, Rule("messages at the end that are kept as they are", low=0, high=10_000)
    ] = 10
    archive_to_knowledge_base: Annotated[bool, Rule("whether what is summarised is archived")] = (
        True
    )


class AutoContextSettings(Struct, frozen=True):
    """What is put before a prompt unasked."""

    enabled: Annotated[bool, Rule("whether anything is")] = True
    mode: Annotated[Literal["selective", "always"], Rule("before which prompts")] = "selective"
    max_tokens: Annotated[int, Rule("at most this many tokens", low=16, high=1_000_000)] = 2000
    relevance_threshold: Annotated[float, Rule("from 0 to 1: what is worth it", low=0, high=1)] = (
        0.7
    )
    cross_session_search: Annotated[bool, Rule("whether other conversations are searched too")] = (
        True
    )
    search_triggers: tuple[str, ...] = REFERRING_WORDS
    """Words in a prompt that refer to what was said before."""


class AgentKnowledgeBase(Struct, frozen=True):
    """How an agent's documents are stored and searched."""

    vector_provider: Annotated[str, Rule("what keeps the vectors; there is only this one")] = (
        _VECTORS
    )
    chunk_size: Annotated[int, Rule("longest passage, in characters", low=100, high=20_000)] = 800
    chunk_overlap: Annotated[
        int, Rule("characters that neighbouring passages share", low=0, high=10_000)
    ] = 100
    rerank_limit: Annotated[int, Rule("hits that are reranked", low=0, high=10_000)] = 50
    auto_context: AutoContextSettings = AutoContextSettings()
    namespaces: NamespaceSettings = field(default_factory=NamespaceSettings)


class AgentMemory(Struct, frozen=True):
    """How an agent's conversations are kept."""

    compression: CompressionSettings = CompressionSettings()


class AgentSettings(Struct, frozen=True):
    """Everything about one agent."""

    agent_id: str
    provider: Annotated[str, Rule("whose model it uses")] = ""
    model: Annotated[str, Rule("the model that it uses; empty for the configured one")] = ""
    resources: tuple[str, ...] = RESOURCES
    """What of memctl it may use: ``memory``, ``knowledge_base``."""
    allowed_regular_tools: tuple[str, ...] = ()
    """Tools that it may call; empty for all."""
    memory: AgentMemory = AgentMemory()
    knowledge_base: AgentKnowledgeBase = AgentKnowledgeBase()
    models: tuple[tuple[OwnTask, str], ...] = ()
    """Models that memctl uses for some tasks where this agent is named."""

    @property
    def has_knowledge_base(self) -> bool:
        """Whether it may search documents."""
        return "knowledge_base" in self.resources


def load_agent(path: Path) -> AgentSettings:
    """Read the file of an agent, TOML or JSON as its name ends.

    Raises:
        ConfigError: It cannot be read, names an unknown key, or a value cannot be used.
    """
    place = display_path(path)
    found = _read_json(path) if path.suffix == ".json" else read_toml(path)
    loaded: AgentSettings = _section(AgentSettings, found, "", place)
    provider = loaded.knowledge_base.vector_provider
    if provider != _VECTORS:
        raise ConfigError(
            f"{place}: knowledge_base.vector_provider cannot be {provider!r}",
            f'vectors are kept in {_VECTORS}: write "{_VECTORS}", or leave it out',
        )
    if unknown := [name for name in loaded.resources if name not in RESOURCES]:
        raise ConfigError(
            f"{place}: there is no resource {unknown[0]!r}", f"use {' and '.join(RESOURCES)}"
        )
    checked_name(loaded.agent_id, "an agent")
    return loaded


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{display_path(path)}: not valid JSON: {error}", "fix it") from error
    if not isinstance(found, dict):
        raise ConfigError(f"{display_path(path)}: not a JSON object", 'write {"agent_id": "..."}')
    return found


def _section(section: type[Any], found: Mapping[str, Any], prefix: str, place: str) -> Any:
    """Read a section of the file, and the sections in it."""
    check_keys(found, section.__struct_fields__, prefix=prefix, place=place)
    hints, settings = get_type_hints(section), setting_keys(section)
    values: dict[str, Any] = {}
    for key, value in found.items():
        name, kind = f"{prefix}{key}", hints[key]
        if isinstance(kind, type) and issubclass(kind, Struct):
            if not isinstance(value, dict):
                raise ConfigError(f"{place}: {name} must be a table, not {value!r}")
            values[key] = _section(kind, value, f"{name}.", place)
        elif key in settings:
            values[key] = check_value(section, key, value, name=name, place=place)
        elif key == "agent_id":
            values[key] = _text(value, name, place)
        elif key == "models":
            values[key] = own_models(value, place)
        else:
            values[key] = _texts(value, name, place)
    if section is AgentSettings and "agent_id" not in values:
        raise ConfigError(f"{place}: there is no agent_id", 'write agent_id = "..."')
    return section(**values)


def _text(value: object, name: str, place: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{place}: {name} must be a text, not {value!r}")
    return value


def _texts(value: object, name: str, place: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ConfigError(f"{place}: {name} must be a list of texts, not {value!r}")
    return tuple(value)
