"""Which settings there are, what each means, and which values it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from memctl.kb_settings import Inbox, KnowledgeBaseSettings
from memctl.literals import (
    After,
    ChunkStrategy,
    Duplicates,
    Fusion,
    LogFormat,
    LogLevel,
    Mode,
    WhenUnavailable,
)
from memctl.validation import allowed_values, setting, setting_default, setting_of, setting_rules


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What goes to standard error besides errors."""

    level: LogLevel = setting("warning", "what is logged to standard error")
    format: LogFormat = setting(
        "auto", "how a log line looks; auto is text on a terminal and json elsewhere"
    )


@dataclass(frozen=True, slots=True)
class QuerySettings:
    """What a question gets where it says nothing else."""

    limit: int = setting(10, "how many hits", low=1, high=10_000)
    mode: Mode = setting("hybrid", "how memories are found")
    fusion: Fusion = setting("zscore", "how one score is made of those by words and by meaning")
    keyword_weight: float = setting(
        0.75, "share of the words in the fusion weighted; the rest is meaning's", low=0, high=1
    )
    importance_weight: float = setting(
        0.0, "how much it counts that a memory is important, beside what it says", low=0, high=5
    )
    confidence_weight: float = setting(
        0.0, "how much it counts that a memory is certain", low=0, high=5
    )
    recency_weight: float = setting(
        0.0, "how much it counts that a memory is recent; see half_life of kb set", low=0, high=5
    )
    duplicates: Duplicates = setting(
        "exact", "what is one hit: memories in the same words, in nearly the same, or (keep) none"
    )
    diversity: float = setting(
        0.0, "how much it counts against a hit that it is like a better one", low=0, high=1
    )
    per_document: int = setting(
        0, "so many hits of one document at most; 0 for any number", low=0, high=10_000
    )
    rerank_hits: int = setting(
        50, "so many of the best hits the model of models.rerank puts in order", low=2, high=1000
    )
    answer_tokens: int = setting(
        3000, "of memories that a model is given to answer from", low=500, high=1_000_000
    )


@dataclass(frozen=True, slots=True)
class QueryLogSettings:
    """What a knowledge base notes of the questions it is asked; nothing of it leaves the disk."""

    enabled: bool = setting(True, "note every question, with what it found and how long it took")
    keep: int = setting(
        10_000, "so many questions are kept, the newest ones", low=1, high=1_000_000
    )
    redact: bool = setting(True, "what looks like a key, a token or a password is not noted")


@dataclass(frozen=True, slots=True)
class NewKnowledgeBase:
    """What a knowledge base is created with; later changes here leave existing ones alone."""

    chunk_strategy: ChunkStrategy = setting_of(KnowledgeBaseSettings, "chunk_strategy")
    chunk_size: int = setting_of(KnowledgeBaseSettings, "chunk_size")
    chunk_overlap: int = setting_of(KnowledgeBaseSettings, "chunk_overlap")
    consolidate_interval: int = setting_of(KnowledgeBaseSettings, "consolidate_interval")
    always_on: bool = setting_of(KnowledgeBaseSettings, "always_on")
    after: After = setting_of(Inbox, "after")


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """How inbox folders are watched."""

    settle_seconds: float = setting(
        2.0, "a file is taken once its size and time have stood still this long", low=0, high=3600
    )
    rescan_seconds: float = setting(
        30.0, "seconds between two full scans, which find what events missed", low=0.1, high=86_400
    )


@dataclass(frozen=True, slots=True)
class ConsolidateSettings:
    """How memories become insights."""

    batch_size: int = setting(20, "memories looked at together", low=2, high=10_000)
    near_duplicate: float = setting(
        0.92, "cosine similarity from which two memories may be near duplicates", low=0.5, high=1
    )


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """How the tables of a knowledge base are written to."""

    wait_seconds: float = setting(
        30.0,
        "so long a command waits for another one that is writing to the same knowledge base;"
        " 0 for not at all",
        low=0,
        high=86_400,
    )


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """What one file may take: PDF, office, picture, recording, web page, mail, XML or YAML."""

    memory_mb: int = setting(
        2048, "megabytes of memory for the process that reads it", low=128, high=1_048_576
    )
    processor_seconds: int = setting(
        300,
        "seconds of processor time; a file of more than 10 MB gets as much for each 10 MB",
        low=1,
        high=86_400,
    )
    seconds: float = setting(
        600.0, "seconds by the clock, with the same allowance for size", low=0.1, high=86_400
    )
    text_mb: int = setting(200, "millions of characters that it may give", low=1, high=10_000)


@dataclass(frozen=True, slots=True)
class SqlSettings:
    """Bounds of one ``memctl sql`` statement."""

    memory_limit_mb: int = setting(1024, "megabytes of memory", low=64, high=1_048_576)
    timeout_seconds: float = setting(60.0, "seconds until it is stopped", low=0.1, high=86_400)


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """An OpenAI-compatible endpoint; nothing is ever sent anywhere while base_url is empty."""

    base_url: str = setting("", "such as http://localhost:11434/v1")
    api_key_env: str = setting(
        "OPENAI_API_KEY",
        "the environment variable that holds the key, where one is needed; it is sent to the host"
        " of base_url alone",
    )
    api_key_file: str = setting("", "a file that holds the key, instead of a variable")
    timeout_seconds: float = setting(
        120.0, "seconds until a call is given up", low=0.1, high=86_400
    )
    retries: int = setting(
        3, "more tries, ever later, after a 429, a 5xx or a time-out", low=0, high=20
    )
    concurrency: int = setting(4, "calls at the same time", low=1, high=256)


_OWN_KEY = (
    "where another key for this task is: an environment variable, or a file whose name has a /"
)


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Which model of the endpoint does what; empty is the built-in way (or not at all)."""

    understand: str = setting("", "gist, entities, facts of a document")
    consolidate: str = setting("", "insights from memories that belong together")
    answer: str = setting("", "answers to questions")
    embed: str = setting("", "vectors of new knowledge bases; existing ones keep theirs")
    rerank: str = setting(
        "",
        "puts the best hits first: a model behind the endpoint's /rerank, a cross-encoder on this"
        " machine, onnx/FOLDER, or builtin, the scores of the search",
    )
    transcribe: str = setting("", "recordings become text")
    image: str = setting("", "pictures are described and read")
    understand_url: str = setting("", "another base_url for this task")
    consolidate_url: str = setting("", "another base_url for this task")
    answer_url: str = setting("", "another base_url for this task")
    embed_url: str = setting("", "another base_url for this task")
    rerank_url: str = setting("", "another base_url for this task")
    transcribe_url: str = setting("", "another base_url for this task")
    image_url: str = setting("", "another base_url for this task")
    understand_key: str = setting("", _OWN_KEY)
    consolidate_key: str = setting("", _OWN_KEY)
    answer_key: str = setting("", _OWN_KEY)
    embed_key: str = setting("", _OWN_KEY)
    rerank_key: str = setting("", _OWN_KEY)
    transcribe_key: str = setting("", _OWN_KEY)
    image_key: str = setting("", _OWN_KEY)
    most_windows: int = setting(
        50,
        "of a long document a model reads so many windows of 12,000 characters, spread from its"
        " beginning to its end; the rest is understood the built-in way",
        low=1,
        high=1_000_000,
    )
    when_unavailable: WhenUnavailable = setting(
        "wait",
        "when a model is down or its budget is spent, files and groups of memories wait for it, or"
        " are done the built-in way, files marked for `memctl document reprocess --upgrade`",
    )


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """What models may cost; prices are yours to state, in whatever currency, and 0 is free."""

    daily_tokens: int = setting(
        0, "tokens a knowledge base may use a day (UTC); 0 for any number", low=0, high=10**12
    )
    daily_cost: float = setting(
        0.0, "what a knowledge base may cost a day (UTC); 0 for anything", low=0, high=1e9
    )
    input_price: float = setting(0.0, "of a million tokens sent to a chat model", low=0, high=1e6)
    output_price: float = setting(0.0, "of a million tokens a chat model writes", low=0, high=1e6)
    embed_price: float = setting(0.0, "of a million tokens embedded or reranked", low=0, high=1e6)
    transcribe_price: float = setting(0.0, "of a minute transcribed", low=0, high=1e6)


OriginKind = Literal["flag", "environment", "file", "default"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value came from: the kind of source, and its flag, variable or file."""

    kind: OriginKind
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".rstrip()


@dataclass(frozen=True, slots=True)
class Config:
    """Every setting with its value; ``origins`` says for each dotted key which source won."""

    home: Path
    """The folder that holds every knowledge base."""
    path: Path
    """The config file, whether or not it exists."""
    kb: str | None = None
    """``MEMCTL_KB``: the knowledge base to read and write where a command names none."""
    default_kb: str = setting(
        "default", "the knowledge base that is written to where a command names none"
    )
    log: LogSettings = LogSettings()
    query: QuerySettings = QuerySettings()
    query_log: QueryLogSettings = QueryLogSettings()
    new_kb: NewKnowledgeBase = NewKnowledgeBase()
    watch: WatchSettings = WatchSettings()
    consolidate: ConsolidateSettings = ConsolidateSettings()
    store: StoreSettings = StoreSettings()
    limits: LimitSettings = LimitSettings()
    sql: SqlSettings = SqlSettings()
    endpoint: EndpointSettings = EndpointSettings()
    models: ModelSettings = ModelSettings()
    budget: BudgetSettings = BudgetSettings()
    origins: Mapping[str, Origin] = field(default_factory=dict)


SECTIONS: Mapping[str, type[Any]] = {
    "log": LogSettings,
    "query": QuerySettings,
    "query_log": QueryLogSettings,
    "new_kb": NewKnowledgeBase,
    "watch": WatchSettings,
    "consolidate": ConsolidateSettings,
    "store": StoreSettings,
    "limits": LimitSettings,
    "sql": SqlSettings,
    "endpoint": EndpointSettings,
    "models": ModelSettings,
    "budget": BudgetSettings,
}


def settings_of(config: Config) -> dict[str, Any]:
    """Return every setting by its dotted key, in the order of the example file."""
    found: dict[str, Any] = {"home": str(config.home), "default_kb": config.default_kb}
    for name, section in SECTIONS.items():
        values = getattr(config, name)
        found |= {f"{name}.{key}": getattr(values, key) for key in setting_rules(section)}
    return found


_HOME_HELP = "the folder that holds every knowledge base; the default is the system's own place"


def example_config() -> str:
    """Return a config file with every setting, commented out, explained, at its default."""
    lines = [
        "# Settings of memctl.  Every line that starts with `# name =` shows a default: remove the",
        "# `# ` and change the value.  Each can also be set by an environment variable, such as",
        "# MEMCTL_WATCH_SETTLE_SECONDS for settle_seconds of [watch].",
        "",
        f"# {_HOME_HELP}",
        '# home = "~/memories"',
        *_example_lines(Config),
    ]
    for name, section in SECTIONS.items():
        about = (section.__doc__ or "").replace("``", "`")
        lines += ["", f"[{name}]", f"# {about}", *_example_lines(section)]
    return "\n".join(lines) + "\n"


def _example_lines(section: type[Any]) -> list[str]:
    lines = []
    for key, rule in setting_rules(section).items():
        words = allowed_values(section, key)
        range_ = f" ({' | '.join(words)})" if words else ""
        if rule.allowed_range:
            range_ = f" ({rule.allowed_range})"
        lines += [
            "",
            f"# {rule.help}{range_}",
            f"# {key} = {_toml_value(setting_default(section, key))}",
        ]
    return lines


def _toml_value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)
