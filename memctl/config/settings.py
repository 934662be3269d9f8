"""Every setting of the program: what it is called, its default, its values and its explanation.

The config file, environment variables, checks and documentation follow from these declarations.
Must never know where values come from, nor what they are used for.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from memctl.errors import ConfigError
from memctl.kb_settings import Inbox, KnowledgeBaseSettings
from memctl.literals import (
    After,
    AutoContextMode,
    ChunkStrategy,
    Duplicates,
    Fusion,
    LogFormat,
    LogLevel,
    Mode,
    Task,
    WhenUnavailable,
)
from memctl.schedules import Schedule
from memctl.validation import (
    allowed_values,
    check_value,
    setting,
    setting_default,
    setting_of,
    setting_rules,
    shown_value,
)

_log = logging.getLogger(__name__)
_PASSWORD = re.compile(r"://.*@", re.DOTALL)


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What goes to standard error besides errors."""

    level: LogLevel = setting("warning", "what is logged to standard error")
    format: LogFormat = setting(
        "auto", "how a log line looks; auto is text on a terminal and json elsewhere"
    )


@dataclass(frozen=True, slots=True)
class QuerySettings:
    """How a question is searched for and answered unless it says otherwise."""

    limit: int = setting(10, "how many hits", low=1, high=10_000)
    mode: Mode = setting("hybrid", "how memories are found")
    fusion: Fusion = setting("zscore", "how the keyword score and the vector score become one")
    keyword_weight: float = setting(
        0.75,
        "weight of the keyword score in the fusion weighted; the rest is the vector score's",
        low=0,
        high=1,
    )
    importance_weight: float = setting(
        0.0, "weight of a memory's importance in its score", low=0, high=5
    )
    confidence_weight: float = setting(
        0.0, "weight of a memory's confidence in its score", low=0, high=5
    )
    recency_weight: float = setting(
        0.0, "weight in its score of how recent a memory is; see half_life of kb set", low=0, high=5
    )
    duplicates: Duplicates = setting(
        "exact",
        "which memories are one hit: with the same words, with nearly the same, or (keep) none",
    )
    diversity: float = setting(
        0.0, "how much similarity to a better hit lowers a hit", low=0, high=1
    )
    per_document: int = setting(
        0, "at most this many hits per document; 0 means no limit", low=0, high=10_000
    )
    rerank_hits: int = setting(
        50, "how many of the best hits the model of models.rerank sorts", low=2, high=1000
    )
    threshold: float = setting(
        0.0,
        "least relevance of a hit, 0 to 1; 0.7 keeps what is clearly relevant, 0 everything",
        low=0,
        high=1,
    )
    answer_tokens: int = setting(
        3000, "tokens of memories that a model gets to answer from", low=500, high=1_000_000
    )


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """What stands before a prompt."""

    least_relevance: float = setting(
        0.45,
        "for --auto: least relevance of all that is known to a message that does not refer back;"
        " of 100 questions about chats, 10 to 20 are below",
        low=0,
        high=1,
    )


@dataclass(frozen=True, slots=True)
class AutoContextSettings:
    """What `memctl session prompt` puts before a message from other conversations."""

    enabled: bool = setting(True, "put in what is known from other conversations")
    mode: AutoContextMode = setting(
        "selective", "for messages that refer back, for every message, or for none"
    )
    max_tokens: int = setting(2000, "at most this many tokens", low=16, high=1_000_000)
    relevance_threshold: float = setting(
        0.7, "least relevance of what is put in; see threshold of [query]", low=0, high=1
    )
    cross_session_search: bool = setting(True, "look in other conversations of the same user")
    search_triggers: tuple[str, ...] = setting(
        (
            "what did we discuss", "previous conversation", "last time", "remind me",
            "we mentioned", "earlier you said", "in the past", "have we talked about",
            "did I mention",
        ),
        "phrases by which a message refers back, besides those that are recognised in seven"
        " languages; they are taken off before it is searched for",
    )  # fmt: skip
    search_words: tuple[str, ...] = setting(
        ("previous", "earlier", "discussed", "mentioned", "last time", "remind"),
        "words by which a question refers back",
    )


@dataclass(frozen=True, slots=True)
class QueryLogSettings:
    """The log of the questions of each knowledge base; nothing of it leaves the disk."""

    enabled: bool = setting(True, "record every question, with what it found and how long it took")
    keep: int = setting(
        10_000, "how many questions are kept, the newest ones", low=1, high=1_000_000
    )
    redact: bool = setting(True, "leave out what looks like a key, a token or a password")


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
        2.0,
        "a file is taken once its size and time have not changed for this many seconds",
        low=0,
        high=3600,
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
class SkillSettings:
    """What upkeep does with skills."""

    auto_repair: bool = setting(
        False, "whether upkeep repairs simple conflicts of skills; memctl job undo takes it back"
    )


@dataclass(frozen=True, slots=True)
class TierSettings:
    """How long values of agents last, and which of them become memories."""

    working_ttl: int = setting(
        1800,
        "seconds that a value of working memory lasts; 0 means as long as its session",
        low=0,
        high=31_622_400,
    )
    short_term_ttl: int = setting(
        3600, "seconds that a short-term entry lasts", low=1, high=31_622_400
    )
    promote_reads: int = setting(
        3,
        "how often a short-term entry has to be read to become a memory when it is over",
        low=1,
        high=1_000_000,
    )
    near_duplicate: float = setting(
        0.92,
        "cosine similarity from which two entries of a session become one memory",
        low=0.5,
        high=1,
    )
    promote_hour: int = setting(
        4,
        "hour of the day (local time) at which memctl watch promotes; -1 for never",
        low=-1,
        high=23,
    )
    boost_on_use: bool = setting(
        False, "raise the importance of a memory that is shown, at most once a day"
    )


@dataclass(frozen=True, slots=True)
class AccessLogSettings:
    """Who read which memory when, besides how often each was shown."""

    enabled: bool = setting(
        True, "record each memory that is shown, with the question and who asked"
    )
    private: bool = setting(False, "record that for private memories too")
    keep: int = setting(
        100_000, "how many accesses are kept, the newest ones", low=1, high=10_000_000
    )


@dataclass(frozen=True, slots=True)
class UpkeepSettings:
    """What ``memctl watch`` keeps in order by itself; see ``memctl upkeep list``."""

    importance_floor: float = setting(
        0.05, "what importance that fades with disuse never falls below", low=0, high=1
    )
    archive_from: float = setting(
        0.9, "staleness from which a distilled memory is archived; 1 archives none", low=0.1, high=1
    )
    most_archived: float = setting(
        0.05,
        "largest share of a knowledge base that is archived in one run; more than that, and more"
        " than 20 memories, waits for `memctl upkeep run rot --force`",
        low=0,
        high=1,
    )
    expiry_grace_days: int = setting(
        7, "days after which a memory that no longer holds is deleted", low=0, high=36_500
    )
    prune_sessions_days: int = setting(
        0,
        "days without a message after which a conversation is summarised and its messages are"
        " archived; 0 for never",
        low=0,
        high=36_500,
    )


@dataclass(frozen=True, slots=True)
class CustomJob:
    """A shell command of the user's that runs on a schedule, from ``[[upkeep.custom]]``."""

    name: str
    command: str
    schedule: Schedule
    kbs: tuple[str, ...] = ()
    """For these knowledge bases; none for every one that is watched."""
    timeout_seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """How the tables of a knowledge base are written to."""

    wait_seconds: float = setting(
        30.0,
        "seconds that a command waits for another one that is writing to the same knowledge base;"
        " 0 means that it does not wait",
        low=0,
        high=86_400,
    )


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """Limits of reading one file: PDF, office, picture, recording, web page, mail, XML or YAML."""

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
    read_closely: bool = setting(
        True,
        "let the reading model read the sentences; by rules alone, reading is far faster, finds"
        " names and dates, and makes no memories besides passages and gists",
    )


@dataclass(frozen=True, slots=True)
class WebSettings:
    """Limits of a web page that ``memctl ingest`` fetches."""

    seconds: float = setting(
        30.0, "seconds until all of it must be there, redirects included", low=0.1, high=3600
    )
    megabytes: int = setting(20, "megabytes that it may have", low=1, high=1024)
    allow_private: bool = setting(False, "also fetch pages of this machine and of private networks")


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
        3, "retries, with growing pauses, after a 429, a 5xx or a time-out", low=0, high=20
    )
    concurrency: int = setting(4, "calls at the same time", low=1, high=256)
    allowed: tuple[str, ...] = setting(
        (), "further addresses that a knowledge base may name as an endpoint of its own"
    )


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
        "at most this many windows of 12,000 characters of a long document are read by a model,"
        " spread from its beginning to its end; the rest is understood the built-in way",
        low=1,
        high=1_000_000,
    )
    when_unavailable: WhenUnavailable = setting(
        "wait",
        "when a model is down or its budget is spent, files and groups of memories wait for it, or"
        " are done the built-in way, files marked for `memctl document reprocess --upgrade`",
    )


@dataclass(frozen=True, slots=True)
class NamespaceSettings:
    """The namespaces of a named user; {user_id} stands for the user's name."""

    conversations: str = setting("user:{user_id}:conversations", "what a user and agents say")
    documents: str = setting("user:{user_id}:documents", "what a user ingests")
    shared: str = setting("organization:shared", "what every user reads besides their own")


@dataclass(frozen=True, slots=True)
class TriggerSettings:
    """Phrases by which users have something kept; with a colon they must begin a sentence."""

    memory: tuple[str, ...] = setting(
        (
            "we designed", "we built", "our plan for", "achieved together", "this setup for",
            "memory goal:", "let's save this", "memory:", "remember this conversation",
            "save this design", "save our work", "store this idea",
        ),
        "what makes a memory of type memories; a list of your own replaces this one",
    )  # fmt: skip
    fact: tuple[str, ...] = setting(
        (
            "important:", "remember this fact:", "my preference is", "I always do", "key detail:",
            "memorize this:", "fact:", "never forget:", "critical info:", "note this:",
            "remember:", "store this fact",
        ),
        "what makes a memory of type important_fact; a list of your own replaces this one",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class FeedbackSettings:
    """How conversations and answers are judged, and what becomes of judgements."""

    satisfaction_weight: float = setting(
        0.5, "weight of how content the user was in the reward of a conversation", low=0, high=1
    )
    completion_weight: float = setting(
        0.3, "weight of whether what was to be done was done", low=0, high=1
    )
    grounding_weight: float = setting(
        0.2, "weight of the share of answers that memories support", low=0, high=1
    )
    change_importance: bool = setting(
        True, "memories that good answers rely on gain importance, those of bad ones lose it"
    )
    most_change: float = setting(
        0.05, "by how much one judgement changes the importance of a memory", low=0, high=0.5
    )
    keep_examples: bool = setting(
        True, "what an answer should have been is kept as a memory of type preference"
    )
    keep_summaries: bool = setting(
        True, "the summary of a conversation that has ended is kept as a memory of type summary"
    )
    pleased: tuple[str, ...] = setting(
        ("thanks", "thank you", "that's right", "that is right"),
        "words of the user that count as 0.8 where no score was given",
    )
    displeased: tuple[str, ...] = setting(
        ("that's wrong", "that is wrong", "no", "again"),
        "words with which a message of the user begins that count as 0.2",
    )


@dataclass(frozen=True, slots=True)
class OutsideSource:
    """A program of the user's that is asked by `memctl enrich` and `memctl query --with NAME`."""

    command: str = setting(
        "", "gets a question on standard input, prints lines of JSON: text, source, url, date"
    )
    seconds: float = setting(30.0, "seconds until it is stopped", low=0.1, high=3600)
    megabytes: float = setting(4.0, "megabytes that it may print", low=0.001, high=256)
    most: int = setting(20, "at most this many texts are kept", low=1, high=1000)
    confidence: float = setting(0.5, "how far what it says is trusted", low=0, high=1)


@dataclass(frozen=True, slots=True)
class CompressionSettings:
    """When long conversations are summarised, but for their latest messages."""

    enabled: bool = setting(
        True, "whether conversations that get long are summarised by themselves"
    )
    threshold_tokens: int = setting(
        8000, "tokens of messages from which on the earlier ones are summarised", low=1, high=10**9
    )
    recent_messages_to_keep: int = setting(
        10, "messages that stay as they are", low=0, high=100_000
    )
    archive_to_knowledge_base: bool = setting(
        True, "whether each summary becomes a document, which is found by later questions"
    )


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """What models may cost; prices are yours to state, in whatever currency, and 0 is free."""

    daily_tokens: int = setting(
        0, "tokens a knowledge base may use a day (UTC); 0 means no limit", low=0, high=10**12
    )
    daily_cost: float = setting(
        0.0, "what a knowledge base may cost a day (UTC); 0 means no limit", low=0, high=1e9
    )
    input_price: float = setting(
        0.0, "price of a million tokens sent to a chat model", low=0, high=1e6
    )
    output_price: float = setting(
        0.0, "price of a million tokens that a chat model writes", low=0, high=1e6
    )
    embed_price: float = setting(
        0.0, "price of a million tokens embedded or reranked", low=0, high=1e6
    )
    transcribe_price: float = setting(0.0, "price of a minute transcribed", low=0, high=1e6)


@dataclass(frozen=True, slots=True)
class ResidentSettings:
    """The background process that answers commands that read; see `memctl resident`."""

    enabled: bool = setting(True, "let commands go through it, and have one beside watch and serve")
    idle_minutes: int = setting(
        30,
        "minutes without a command after which one that was started by hand ends; 0 for never",
        low=0,
        high=525_600,
    )
    memory_mb: int = setting(
        1500, "megabytes above which it drops its caches, or ends", low=200, high=1_048_576
    )


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
    user: str | None = None
    """``MEMCTL_USER``: whose memory is read and written where a command names no user."""
    agent: str | None = None
    """``MEMCTL_AGENT``: who writes where a command names no agent."""
    session: str | None = None
    """``MEMCTL_SESSION``: the conversation where a command names none."""
    default_kb: str = setting(
        "default", "the knowledge base that is written to where a command names none"
    )
    log: LogSettings = LogSettings()
    query: QuerySettings = QuerySettings()
    context: ContextSettings = ContextSettings()
    auto_context: AutoContextSettings = AutoContextSettings()
    query_log: QueryLogSettings = QueryLogSettings()
    new_kb: NewKnowledgeBase = NewKnowledgeBase()
    watch: WatchSettings = WatchSettings()
    consolidate: ConsolidateSettings = ConsolidateSettings()
    tiers: TierSettings = TierSettings()
    skills: SkillSettings = SkillSettings()
    store: StoreSettings = StoreSettings()
    limits: LimitSettings = LimitSettings()
    web: WebSettings = WebSettings()
    sql: SqlSettings = SqlSettings()
    endpoint: EndpointSettings = EndpointSettings()
    models: ModelSettings = ModelSettings()
    budget: BudgetSettings = BudgetSettings()
    namespaces: NamespaceSettings = NamespaceSettings()
    triggers: TriggerSettings = TriggerSettings()
    compression: CompressionSettings = CompressionSettings()
    feedback: FeedbackSettings = FeedbackSettings()
    sources: Mapping[str, OutsideSource] = field(default_factory=dict)
    """Programs of the user's by name, as [sources.NAME] says; without any, none is ever run."""
    resident: ResidentSettings = ResidentSettings()
    access_log: AccessLogSettings = AccessLogSettings()
    upkeep: UpkeepSettings = UpkeepSettings()
    custom_jobs: tuple[CustomJob, ...] = ()
    origins: Mapping[str, Origin] = field(default_factory=dict)


SECTIONS: Mapping[str, type[Any]] = {
    item.name: type(item.default) for item in fields(Config) if is_dataclass(item.default)
}
"""The sections of the config file: the fields of ``Config`` that are settings classes."""


def with_own_settings(config: Config, own: KnowledgeBaseSettings, place: str) -> Config:
    """Return the settings as one knowledge base has them: its own models, endpoint and budget.

    An endpoint of its own counts only where the program's settings know its address, so that a
    knowledge base from elsewhere sends nothing to where its user does not; a key is sent to it only
    if it is on the host that the key is for.

    Args:
        config: The program's settings.
        own: Those of the knowledge base.
        place: Where they stand.

    Raises:
        ConfigError: One cannot have that value.
    """
    changed: dict[str, dict[str, Any]] = {"models": dict(own.models)}
    for name, section, given in (
        ("endpoint", EndpointSettings, own.endpoint),
        ("budget", BudgetSettings, own.budget),
    ):
        changed[name] = {
            key: check_value(section, key, value, name=f"{name}.{key}", place=place)
            for key, value in given
        }
    url = changed["endpoint"].get("base_url", "")
    if url and not is_known_endpoint(config, url):
        _log.warning(
            "%s names the endpoint %s, which is not used: add it to allowed of [endpoint]",
            place,
            without_password(url),
        )
        changed["endpoint"] = {}
    elif url and not is_same_host(config.endpoint.base_url, url):
        changed["endpoint"] |= {"api_key_env": "", "api_key_file": ""}
    sections = {name: replace(getattr(config, name), **changed[name]) for name in changed}
    origins = {f"{name}.{key}": Origin("file", place) for name in changed for key in changed[name]}
    return replace(config, **sections, origins={**config.origins, **origins})


def is_known_endpoint(config: Config, url: str) -> bool:
    """Return whether the settings of the program name an address as that of an endpoint."""
    urls = (getattr(config.models, f"{task}_url") for task in get_args(Task))
    known = {config.endpoint.base_url, *urls, *config.endpoint.allowed}
    return bool(url) and url.rstrip("/") in {each.rstrip("/") for each in known if each}


def settings_of(config: Config) -> dict[str, Any]:
    """Return every setting by its dotted key, in the order of the example file."""
    found: dict[str, Any] = {"home": str(config.home), "default_kb": config.default_kb}
    for name, section in SECTIONS.items():
        values = getattr(config, name)
        found |= {f"{name}.{key}": getattr(values, key) for key in setting_rules(section)}
    for name, source in config.sources.items():
        keys = setting_rules(OutsideSource)
        found |= {f"sources.{name}.{key}": getattr(source, key) for key in keys}
    return found


CUSTOM_JOBS = "custom"
_EXAMPLE_CUSTOM = """\
# Commands of yours that `memctl watch` and `memctl upkeep run` run on a schedule (local time).
# MEMCTL_KB names the knowledge base; kbs = ["notes"] limits them to some.
#
#   [[upkeep.custom]]
#   name = "backup"
#   command = "memctl export all -k $MEMCTL_KB --to ~/backup/$MEMCTL_KB.memctl"
#   at = "sun 05:00"
"""
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
    about = (OutsideSource.__doc__ or "").replace("``", "`")
    source = [about, *(line.removeprefix("# ") for line in _example_lines(OutsideSource))]
    lines += ["", "# [sources.wiki]", *(f"#   {line}".rstrip() for line in source)]
    lines += ["", *_EXAMPLE_CUSTOM.splitlines()]
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
    return f'"{value}"' if isinstance(value, str) else shown_value(value)


def is_same_host(common: str, url: str) -> bool:
    """Return whether a key for one address may go to another; never from https to http."""
    from urllib.parse import urlsplit

    try:
        ours, theirs = urlsplit(common.strip()), urlsplit(url)
    except ValueError:  # an IPv6 address that is none
        return False
    return ours.hostname == theirs.hostname and (ours.scheme, theirs.scheme) != ("https", "http")


def check_base_url(url: str, name: str) -> str:
    """Return an endpoint's address, and refuse what is none.

    Args:
        url: The address.
        name: The setting that it is from.

    Raises:
        ConfigError: It is none, or holds a password, which would be shown wherever it is.
    """
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url.strip())
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port or an IPv6 address that is none
        is_one = False
    if not is_one:
        raise ConfigError(
            f"{name} is no address of an endpoint: {without_password(url)!r}",
            "it looks like http://localhost:11434/v1",
        )
    if "@" in parts.netloc:
        raise ConfigError(
            f"{name} holds a user name or a password, which would be shown with it",
            "leave it out; a key belongs into api_key_file or the variable that api_key_env names",
        )
    return url.strip()


def without_password(address: str) -> str:
    """Return an address, which need not be one, without the name and password in it."""
    return _PASSWORD.sub("://***@", address)
