"""What the file of an agent says: its model, its tools, and how it uses memory.

A setting is declared once, as a field; the file may leave out all but ``agent_id``.  What it says
counts instead of the program's settings where the agent is named; ``with_agent`` is the only place
that lays the ones over the others.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from memctl.config import Config, NamespaceSettings
from memctl.errors import ConfigError
from memctl.identity import checked_name, owner_of
from memctl.kb_settings import own_models
from memctl.literals import REFERRING_WORDS, RESOURCES, AutoContextMode, OwnTask
from memctl.paths import display_path, os_error_hint, os_error_reason
from memctl.validation import Rule, check_keys, check_value, parse_toml, read_limited, setting_keys

_VECTORS = "lancedb"
_CHUNKS = ("chunk_size", "chunk_overlap")


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
    mode: Annotated[AutoContextMode, Rule("before which prompts")] = "selective"
    max_tokens: Annotated[int, Rule("at most this many tokens", low=16, high=1_000_000)] = 2000
    relevance_threshold: Annotated[float, Rule("from 0 to 1: what is worth it", low=0, high=1)] = (
        0.7
    )
    cross_session_search: Annotated[bool, Rule("whether other conversations are searched too")] = (
        True
    )
    search_triggers: tuple[str, ...] = REFERRING_WORDS
    """Words in a prompt that refer to what was said before; none in an empty list."""


class AgentKnowledgeBase(Struct, frozen=True):
    """How an agent's documents are stored and searched."""

    vector_provider: Annotated[str, Rule("what keeps the vectors; there is only this one")] = (
        _VECTORS
    )
    chunk_size: Annotated[int, Rule("longest passage, in characters", low=100, high=20_000)] = 800
    chunk_overlap: Annotated[
        int, Rule("characters that neighbouring passages share", low=0, high=10_000)
    ] = 100
    rerank_limit: Annotated[
        int, Rule("hits that are reranked; 0 and 1 mean none", low=0, high=10_000)
    ] = 50
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
    stated: tuple[str, ...] = ()
    """What its file says, by dotted key; for all else the program's settings count."""

    @property
    def has_knowledge_base(self) -> bool:
        """Whether it may search documents, and its conversations are archived as such."""
        return "knowledge_base" in self.resources


def load_agent(path: Path) -> AgentSettings:
    """Read the file of an agent.

    Raises:
        ConfigError: It cannot be read, names an unknown key, or a value cannot be used.
    """
    place = display_path(path)
    try:
        return parse_agent(read_limited(path), place)
    except OSError as error:
        raise ConfigError(
            f"{place}: cannot be read: {os_error_reason(error)}", os_error_hint(error)
        ) from error


def is_json(data: bytes) -> bool:
    """Return whether the settings of an agent are JSON; else they are TOML."""
    return data.removeprefix(BOM_UTF8).lstrip()[:1] == b"{"


def parse_agent(data: bytes, place: str) -> AgentSettings:
    """Return the settings of an agent that TOML or JSON says.

    Args:
        data: The TOML or JSON.
        place: Where it stands.

    Raises:
        ConfigError: It names an unknown key, or a value cannot be used.
    """
    found = _parse_json(data, place) if is_json(data) else parse_toml(data, place)
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
    return replace(loaded, stated=tuple(_dotted_keys(found)))


def _dotted_keys(settings: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Return the keys of a file, those in sections as ``section.key``."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _dotted_keys(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def with_agent(config: Config, agent: AgentSettings) -> Config:
    """Return the settings of the program as they are where an agent is named.

    Raises:
        ConfigError: Its namespaces do not tell whose they are.
    """
    memory, kb = agent.memory, agent.knowledge_base
    named = _read_section(agent, "knowledge_base.namespaces", kb.namespaces)
    for key, template in named.items():
        owner = None if key == "shared" else "a"
        # Where no agent is named, or another one, it must not be taken for another user's.
        if owner_of(config.namespaces, template.replace("{user_id}", "a")) != owner:
            default: str = getattr(config.namespaces, key)
            begin, colon, _ = default.partition("{user_id}:")
            hint = f"begin it with '{begin}{colon}'" if colon else f"write it like {default!r}"
            wrong = "does not begin like those of a user" if owner else "is one user's"
            raise ConfigError(f"agent {agent.agent_id}: the namespace {template!r} {wrong}", hint)
    compression = _read_section(agent, "memory.compression", memory.compression)
    if not agent.has_knowledge_base:
        compression["archive_to_knowledge_base"] = False
    auto_context = _read_section(agent, "knowledge_base.auto_context", kb.auto_context)
    triggers = auto_context.pop("search_triggers", None)
    if triggers is not None:
        known = config.auto_context.search_triggers if triggers else ()
        phrases = (each for each in triggers if " " in each and each not in known)
        auto_context["search_triggers"] = (*known, *phrases)
        auto_context["search_words"] = tuple(each for each in triggers if " " not in each)
    own = _read_section(agent, "knowledge_base", kb)
    query = config.query
    if "rerank_limit" in own:
        query = replace(query, rerank_hits=own["rerank_limit"])
    return replace(
        config,
        compression=replace(config.compression, **compression),
        auto_context=replace(config.auto_context, **auto_context),
        namespaces=replace(config.namespaces, **named),
        query=query,
        agent_models=agent.models,
        agent_chunks=tuple((key, own[key]) for key in _CHUNKS if key in own),
    )


def effective_settings(config: Config, agent: AgentSettings) -> AgentSettings:
    """Return the settings of an agent with those of the program for all that its file leaves out.

    Raises:
        ConfigError: As ``with_agent``.
    """
    laid = with_agent(config, agent)
    own, auto = agent.knowledge_base, laid.auto_context
    shown = {key: getattr(auto, key) for key in setting_keys(AutoContextSettings)}
    if "knowledge_base.auto_context.search_triggers" not in agent.stated:
        shown["search_triggers"] = auto.search_words
    chunks = {key: getattr(laid.new_kb, key) for key in _CHUNKS} | dict(laid.agent_chunks)
    kb = replace(
        own,
        **chunks,
        rerank_limit=laid.query.rerank_hits,
        auto_context=replace(own.auto_context, **shown),
        namespaces=laid.namespaces,
    )
    memory = AgentMemory(CompressionSettings(**asdict(laid.compression)))
    return replace(agent, memory=memory, knowledge_base=kb)


def _read_section(agent: AgentSettings, name: str, section: Struct) -> dict[str, Any]:
    """Return what the file of an agent says in a section itself."""
    return {
        key: getattr(section, key)
        for key in section.__struct_fields__
        if f"{name}.{key}" in agent.stated
    }


def _parse_json(data: bytes, place: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{place}: not valid JSON: {error}", "fix it") from error
    return found


def _section(section: type[Any], found: Mapping[str, Any], prefix: str, place: str) -> Any:
    """Read a section of the file, and the sections in it."""
    known = [key for key in section.__struct_fields__ if key != "stated"]
    hints, settings = get_type_hints(section), setting_keys(section)
    for key in found.keys() - set(known):
        if inner := _find_section(section, key, prefix):
            raise ConfigError(f"{place}: unknown setting {prefix + key!r}", f"it is {inner!r}")
    check_keys(found, known, prefix=prefix, place=place)
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


def _find_section(section: type[Any], key: str, prefix: str) -> str:
    """Return the full name of a section of that name further in; "" for none."""
    for name, kind in get_type_hints(section).items():
        if isinstance(kind, type) and issubclass(kind, Struct):
            if name == key:
                return f"{prefix}{name}"
            if found := _find_section(kind, key, f"{prefix}{name}."):
                return found
    return ""


def _text(value: object, name: str, place: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{place}: {name} must be a text, not {value!r}")
    return value


def _texts(value: object, name: str, place: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ConfigError(f"{place}: {name} must be a list of texts, not {value!r}")
    return tuple(value)
