"""Every setting of the program: what it is called, its default, its values and its explanation.

The config file, environment variables, checks and documentation follow from these declarations.
Must never know where values come from, nor what they are used for.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from msgspec import Struct, field
from msgspec.structs import replace

from memctl.errors import ConfigError
from memctl.kb_settings import Inbox, KnowledgeBaseSettings
from memctl.literals import (
    DEFAULT_COMMUNITIES,
    DEFAULT_ROUNDS,
    MAX_COMMUNITIES,
    MAX_ROUNDS,
    REFERRING_WORDS,
    After,
    AutoContextMode,
    ChunkStrategy,
    Duplicates,
    Fusion,
    LogFormat,
    LogLevel,
    Mode,
    OwnTask,
    Task,
    WhenUnavailable,
)
from memctl.schedules import Schedule
from memctl.validation import (
    Rule,
    allowed_values,
    check_value,
    rule_of,
    setting_default,
    setting_keys,
    setting_rules,
    shown_value,
)

_log = logging.getLogger(__name__)
_PASSWORD = re.compile(r"://.*@", re.DOTALL)


class LogSettings(Struct, frozen=True):
    """What goes to standard error besides errors."""

    level: Annotated[LogLevel, Rule("what is logged to standard error")] = "warning"
    format: Annotated[
        LogFormat, Rule("how a log line looks; auto is text on a terminal and json elsewhere")
    ] = "auto"


class QuerySettings(Struct, frozen=True):
    """How a question is searched for and answered unless it says otherwise."""

    limit: Annotated[int, Rule("how many hits", low=1, high=10_000)] = 10
    mode: Annotated[Mode, Rule("how memories are found")] = "hybrid"
    fusion: Annotated[Fusion, Rule("how the keyword score and the vector score become one")] = (
        "zscore"
    )
    keyword_weight: Annotated[
        float,
        Rule(
            "weight of the keyword score in the fusion weighted; the rest is the vector score's",
            low=0,
            high=1,
        ),
    ] = 0.75
    importance_weight: Annotated[
        float, Rule("weight of a memory's importance in its score", low=0, high=5)
    ] = 0.0
    confidence_weight: Annotated[
        float, Rule("weight of a memory's confidence in its score", low=0, high=5)
    ] = 0.0
    recency_weight: Annotated[
        float,
        Rule(
            "weight in its score of how recent a memory is; see half_life of kb set", low=0, high=5
        ),
    ] = 0.0
    duplicates: Annotated[
        Duplicates,
        Rule(
            "which memories are one hit: with the same words, with nearly the same, or (keep) none"
        ),
    ] = "exact"
    diversity: Annotated[
        float, Rule("how much similarity to a better hit lowers a hit", low=0, high=1)
    ] = 0.0
    per_document: Annotated[
        int, Rule("at most this many hits per document; 0 means no limit", low=0, high=10_000)
    ] = 0
    rounds: Annotated[
        int, Rule("how many rounds mode agentic searches at most", low=1, high=MAX_ROUNDS)
    ] = DEFAULT_ROUNDS
    relevant_hits: Annotated[
        int, Rule("how many relevant hits are enough for mode agentic to stop", low=1, high=5)
    ] = 3
    mean_relevance: Annotated[
        float, Rule("the mean relevance that they need for that", low=0, high=1)
    ] = 0.5
    graph_seeds: Annotated[
        int, Rule("at how many passages mode graph starts at most", low=1, high=50)
    ] = 5
    seed_distance: Annotated[
        float,
        Rule("their largest cosine distance from the question", low=0, high=2),
    ] = 0.8
    communities: Annotated[
        int, Rule("how many communities mode graph shows at most", low=0, high=MAX_COMMUNITIES)
    ] = DEFAULT_COMMUNITIES
    cache_minutes: Annotated[
        int,
        Rule(
            "how long the same question, asked again of one unchanged knowledge base, gets what it"
            " got before; 0 for never",
            low=0,
            high=1440,
        ),
    ] = 0
    rerank_hits: Annotated[
        int, Rule("how many of the best hits the model of models.rerank sorts", low=2, high=1000)
    ] = 50
    threshold: Annotated[
        float,
        Rule(
            "least relevance of a hit, 0 to 1; 0.7 keeps what is clearly relevant, 0 everything",
            low=0,
            high=1,
        ),
    ] = 0.0
    answer_tokens: Annotated[
        int, Rule("tokens of memories that a model gets to answer from", low=500, high=1_000_000)
    ] = 3000


class ContextSettings(Struct, frozen=True):
    """Text put before a prompt."""

    least_relevance: Annotated[
        float,
        Rule(
            "for --auto: least relevance of all that is known to a message that does not refer"
            " back; of 100 questions about chats, 10 to 20 are below",
            low=0,
            high=1,
        ),
    ] = 0.45


class AutoContextSettings(Struct, frozen=True):
    """What `memctl session prompt` puts before a message from other conversations."""

    enabled: Annotated[bool, Rule("put in what is known from other conversations")] = True
    mode: Annotated[
        AutoContextMode, Rule("for messages that refer back, for every message, or for none")
    ] = "selective"
    max_tokens: Annotated[int, Rule("at most this many tokens", low=16, high=1_000_000)] = 2000
    relevance_threshold: Annotated[
        float, Rule("least relevance of what is put in; see threshold of [query]", low=0, high=1)
    ] = 0.7
    cross_session_search: Annotated[bool, Rule("look in other conversations of the same user")] = (
        True
    )
    search_triggers: Annotated[
        tuple[str, ...],
        Rule(
            "phrases by which a message refers back, besides those that are recognised in seven"
            " languages; they are taken off before it is searched for"
        ),
    ] = (
        "what did we discuss",
        "previous conversation",
        "last time",
        "remind me",
        "we mentioned",
        "earlier you said",
        "in the past",
        "have we talked about",
        "did I mention",
    )
    search_words: Annotated[tuple[str, ...], Rule("words by which a question refers back")] = (
        REFERRING_WORDS
    )


class QueryLogSettings(Struct, frozen=True):
    """The log of the questions of each knowledge base; nothing of it leaves the disk."""

    enabled: Annotated[
        bool, Rule("record every question, with what it found and how long it took")
    ] = True
    keep: Annotated[
        int, Rule("how many questions are kept, the newest ones", low=1, high=1_000_000)
    ] = 10_000
    redact: Annotated[bool, Rule("leave out what looks like a key, a token or a password")] = True


class NewKnowledgeBase(Struct, frozen=True):
    """What a knowledge base is created with; later changes here leave existing ones alone."""

    chunk_strategy: Annotated[ChunkStrategy, rule_of(KnowledgeBaseSettings, "chunk_strategy")] = (
        setting_default(KnowledgeBaseSettings, "chunk_strategy")
    )
    chunk_size: Annotated[int, rule_of(KnowledgeBaseSettings, "chunk_size")] = setting_default(
        KnowledgeBaseSettings, "chunk_size"
    )
    chunk_overlap: Annotated[int, rule_of(KnowledgeBaseSettings, "chunk_overlap")] = (
        setting_default(KnowledgeBaseSettings, "chunk_overlap")
    )
    consolidate_interval: Annotated[int, rule_of(KnowledgeBaseSettings, "consolidate_interval")] = (
        setting_default(KnowledgeBaseSettings, "consolidate_interval")
    )
    always_on: Annotated[bool, rule_of(KnowledgeBaseSettings, "always_on")] = setting_default(
        KnowledgeBaseSettings, "always_on"
    )
    after: Annotated[After, rule_of(Inbox, "after")] = setting_default(Inbox, "after")


class WatchSettings(Struct, frozen=True):
    """How inbox folders are watched."""

    settle_seconds: Annotated[
        float,
        Rule(
            "a file is taken once its size and time have not changed for this many seconds",
            low=0,
            high=3600,
        ),
    ] = 2.0
    rescan_seconds: Annotated[
        float,
        Rule("seconds between two full scans, which find what events missed", low=0.1, high=86_400),
    ] = 30.0


class ConsolidateSettings(Struct, frozen=True):
    """How memories become insights."""

    batch_size: Annotated[int, Rule("memories looked at together", low=2, high=10_000)] = 20
    near_duplicate: Annotated[
        float,
        Rule("cosine similarity from which two memories may be near duplicates", low=0.5, high=1),
    ] = 0.92


class SkillSettings(Struct, frozen=True):
    """What upkeep does with skills."""

    auto_repair: Annotated[
        bool,
        Rule("whether upkeep repairs simple conflicts of skills; memctl job undo takes it back"),
    ] = False


class TierSettings(Struct, frozen=True):
    """How long values of agents last, and which of them become memories."""

    working_ttl: Annotated[
        int,
        Rule(
            "seconds that a value of working memory lasts; 0 means as long as its session",
            low=0,
            high=31_622_400,
        ),
    ] = 1800
    short_term_ttl: Annotated[
        int, Rule("seconds that a short-term entry lasts", low=1, high=31_622_400)
    ] = 3600
    promote_reads: Annotated[
        int,
        Rule(
            "how often a short-term entry has to be read to become a memory when it is over",
            low=1,
            high=1_000_000,
        ),
    ] = 3
    near_duplicate: Annotated[
        float,
        Rule(
            "cosine similarity from which two entries of a session become one memory",
            low=0.5,
            high=1,
        ),
    ] = 0.92
    promote_hour: Annotated[
        int,
        Rule(
            "hour of the day (local time) at which memctl watch promotes; -1 for never",
            low=-1,
            high=23,
        ),
    ] = 4
    boost_on_use: Annotated[
        bool, Rule("raise the importance of a memory that is shown, at most once a day")
    ] = False


class AccessLogSettings(Struct, frozen=True):
    """Who read which memory when, besides how often each was shown."""

    enabled: Annotated[
        bool, Rule("record each memory that is shown, with the question and who asked")
    ] = True
    private: Annotated[bool, Rule("record that for private memories too")] = False
    keep: Annotated[
        int, Rule("how many accesses are kept, the newest ones", low=1, high=10_000_000)
    ] = 100_000


class UpkeepSettings(Struct, frozen=True):
    """What ``memctl watch`` tidies automatically; see ``memctl upkeep list``."""

    importance_floor: Annotated[
        float, Rule("what importance that fades with disuse never falls below", low=0, high=1)
    ] = 0.05
    archive_from: Annotated[
        float,
        Rule(
            "staleness from which a distilled memory is archived; 1 archives none", low=0.1, high=1
        ),
    ] = 0.9
    most_archived: Annotated[
        float,
        Rule(
            "largest share of a knowledge base that is archived in one run; more than that, and"
            " more than 20 memories, waits for `memctl upkeep run rot --force`",
            low=0,
            high=1,
        ),
    ] = 0.05
    expiry_grace_days: Annotated[
        int, Rule("days after which a memory that no longer holds is deleted", low=0, high=36_500)
    ] = 7
    prune_sessions_days: Annotated[
        int,
        Rule(
            "days without a message after which a conversation is summarised and its messages are"
            " archived; 0 for never",
            low=0,
            high=36_500,
        ),
    ] = 0


class CustomJob(Struct, frozen=True):
    """A shell command of the user's that runs on a schedule, from ``[[upkeep.custom]]``."""

    name: str
    command: str
    schedule: Schedule
    kbs: tuple[str, ...] = ()
    """For these knowledge bases; none for every one that is watched."""
    timeout_seconds: float = 600.0


class StoreSettings(Struct, frozen=True):
    """How the tables of a knowledge base are written to."""

    wait_seconds: Annotated[
        float,
        Rule(
            "seconds that a command waits for another one that is writing to the same knowledge"
            " base; 0 means that it does not wait",
            low=0,
            high=86_400,
        ),
    ] = 30.0


class LimitSettings(Struct, frozen=True):
    """Limits of reading one file: PDF, office, picture, recording, web page, mail, XML or YAML."""

    memory_mb: Annotated[
        int, Rule("megabytes of memory for the process that reads it", low=128, high=1_048_576)
    ] = 2048
    processor_seconds: Annotated[
        int,
        Rule(
            "seconds of processor time; a file of more than 10 MB gets as much for each 10 MB",
            low=1,
            high=86_400,
        ),
    ] = 300
    seconds: Annotated[
        float, Rule("seconds by the clock, with the same allowance for size", low=0.1, high=86_400)
    ] = 600.0
    text_mb: Annotated[int, Rule("millions of characters that it may give", low=1, high=10_000)] = (
        200
    )
    read_closely: Annotated[
        bool,
        Rule(
            "let the reading model read the sentences; by rules alone, reading is far faster, finds"
            " names and dates, and makes no memories besides passages and gists"
        ),
    ] = True


class WebSettings(Struct, frozen=True):
    """Limits of a web page that ``memctl ingest`` fetches."""

    seconds: Annotated[
        float, Rule("seconds until all of it must be there, redirects included", low=0.1, high=3600)
    ] = 30.0
    megabytes: Annotated[int, Rule("megabytes that it may have", low=1, high=1024)] = 20
    allow_private: Annotated[
        bool, Rule("also fetch pages of this machine and of private networks")
    ] = False


class SqlSettings(Struct, frozen=True):
    """Bounds of one ``memctl sql`` statement."""

    memory_limit_mb: Annotated[int, Rule("megabytes of memory", low=64, high=1_048_576)] = 1024
    timeout_seconds: Annotated[float, Rule("seconds until it is stopped", low=0.1, high=86_400)] = (
        60.0
    )


class EndpointSettings(Struct, frozen=True):
    """An OpenAI-compatible endpoint; nothing is ever sent anywhere while base_url is empty."""

    base_url: Annotated[str, Rule("such as http://localhost:11434/v1")] = ""
    api_key_env: Annotated[
        str,
        Rule(
            "the environment variable that holds the key, where one is needed; it is sent to the"
            " host of base_url alone"
        ),
    ] = "OPENAI_API_KEY"
    api_key_file: Annotated[str, Rule("a file that holds the key, instead of a variable")] = ""
    timeout_seconds: Annotated[
        float, Rule("seconds until a call is given up", low=0.1, high=86_400)
    ] = 120.0
    retries: Annotated[
        int, Rule("retries, with growing pauses, after a 429, a 5xx or a time-out", low=0, high=20)
    ] = 3
    concurrency: Annotated[int, Rule("calls at the same time", low=1, high=256)] = 4
    allowed: Annotated[
        tuple[str, ...],
        Rule("further addresses that a knowledge base may name as an endpoint of its own"),
    ] = ()


_OWN_KEY = (
    "where another key for this task is: an environment variable, or a file whose name has a /"
)


class ModelSettings(Struct, frozen=True):
    """Which model of the endpoint does what; empty is the built-in way (or not at all)."""

    understand: Annotated[str, Rule("gist, entities, facts of a document")] = ""
    consolidate: Annotated[str, Rule("insights from memories that belong together")] = ""
    answer: Annotated[str, Rule("answers to questions")] = ""
    embed: Annotated[str, Rule("vectors of new knowledge bases; existing ones keep theirs")] = ""
    rerank: Annotated[
        str,
        Rule(
            "puts the best hits first: a model behind the endpoint's /rerank, a cross-encoder on"
            " this machine, onnx/FOLDER, or builtin, the scores of the search"
        ),
    ] = ""
    transcribe: Annotated[str, Rule("recordings become text")] = ""
    image: Annotated[str, Rule("pictures are described and read")] = ""
    understand_url: Annotated[str, Rule("another base_url for this task")] = ""
    consolidate_url: Annotated[str, Rule("another base_url for this task")] = ""
    answer_url: Annotated[str, Rule("another base_url for this task")] = ""
    embed_url: Annotated[str, Rule("another base_url for this task")] = ""
    rerank_url: Annotated[str, Rule("another base_url for this task")] = ""
    transcribe_url: Annotated[str, Rule("another base_url for this task")] = ""
    image_url: Annotated[str, Rule("another base_url for this task")] = ""
    understand_key: Annotated[str, Rule(_OWN_KEY)] = ""
    consolidate_key: Annotated[str, Rule(_OWN_KEY)] = ""
    answer_key: Annotated[str, Rule(_OWN_KEY)] = ""
    embed_key: Annotated[str, Rule(_OWN_KEY)] = ""
    rerank_key: Annotated[str, Rule(_OWN_KEY)] = ""
    transcribe_key: Annotated[str, Rule(_OWN_KEY)] = ""
    image_key: Annotated[str, Rule(_OWN_KEY)] = ""
    most_windows: Annotated[
        int,
        Rule(
            "at most this many windows of 12,000 characters of a long document are read by a model,"
            " spread from its beginning to its end; the rest is understood the built-in way",
            low=1,
            high=1_000_000,
        ),
    ] = 50
    when_unavailable: Annotated[
        WhenUnavailable,
        Rule(
            "when a model is down or its budget is spent, files and groups of memories wait for it,"
            " or are done the built-in way, files marked for `memctl document reprocess --upgrade`"
        ),
    ] = "wait"


class NamespaceSettings(Struct, frozen=True):
    """The namespaces of a named user; {user_id} stands for the user's name."""

    conversations: Annotated[str, Rule("what a user and agents say")] = (
        "user:{user_id}:conversations"
    )
    documents: Annotated[str, Rule("what a user ingests")] = "user:{user_id}:documents"
    shared: Annotated[str, Rule("what every user reads besides their own")] = "organization:shared"


class TriggerSettings(Struct, frozen=True):
    """Phrases by which users have something kept; with a colon they must begin a sentence."""

    memory: Annotated[
        tuple[str, ...],
        Rule("what makes a memory of type memories; a list of your own replaces this one"),
    ] = (
        "we designed",
        "we built",
        "our plan for",
        "achieved together",
        "this setup for",
        "memory goal:",
        "let's save this",
        "memory:",
        "remember this conversation",
        "save this design",
        "save our work",
        "store this idea",
    )
    fact: Annotated[
        tuple[str, ...],
        Rule("what makes a memory of type important_fact; a list of your own replaces this one"),
    ] = (
        "important:",
        "remember this fact:",
        "my preference is",
        "I always do",
        "key detail:",
        "memorize this:",
        "fact:",
        "never forget:",
        "critical info:",
        "note this:",
        "remember:",
        "store this fact",
    )


class FeedbackSettings(Struct, frozen=True):
    """How conversations and answers are judged, and what becomes of judgements."""

    satisfaction_weight: Annotated[
        float,
        Rule("weight of how content the user was in the reward of a conversation", low=0, high=1),
    ] = 0.5
    completion_weight: Annotated[
        float, Rule("weight of whether what was to be done was done", low=0, high=1)
    ] = 0.3
    grounding_weight: Annotated[
        float, Rule("weight of the share of answers that memories support", low=0, high=1)
    ] = 0.2
    change_importance: Annotated[
        bool, Rule("memories that good answers rely on gain importance, those of bad ones lose it")
    ] = True
    most_change: Annotated[
        float, Rule("by how much one judgement changes the importance of a memory", low=0, high=0.5)
    ] = 0.05
    keep_examples: Annotated[
        bool, Rule("what an answer should have been is kept as a memory of type preference")
    ] = True
    keep_summaries: Annotated[
        bool,
        Rule("the summary of a conversation that has ended is kept as a memory of type summary"),
    ] = True
    pleased: Annotated[
        tuple[str, ...], Rule("words of the user that count as 0.8 where no score was given")
    ] = ("thanks", "thank you", "that's right", "that is right")
    displeased: Annotated[
        tuple[str, ...], Rule("words with which a message of the user begins that count as 0.2")
    ] = ("that's wrong", "that is wrong", "no", "again")


class OutsideSource(Struct, frozen=True):
    """A program of the user's that is asked by `memctl enrich` and `memctl query --with NAME`."""

    command: Annotated[
        str,
        Rule("gets a question on standard input, prints lines of JSON: text, source, url, date"),
    ] = ""
    seconds: Annotated[float, Rule("seconds until it is stopped", low=0.1, high=3600)] = 30.0
    megabytes: Annotated[float, Rule("megabytes that it may print", low=0.001, high=256)] = 4.0
    most: Annotated[int, Rule("at most this many texts are kept", low=1, high=1000)] = 20
    confidence: Annotated[float, Rule("how far what it says is trusted", low=0, high=1)] = 0.5


class CompressionSettings(Struct, frozen=True):
    """When long conversations are summarised, but for their latest messages."""

    enabled: Annotated[
        bool, Rule("whether conversations that get long are summarised by themselves")
    ] = True
    threshold_tokens: Annotated[
        int,
        Rule("tokens of messages from which on the earlier ones are summarised", low=1, high=10**9),
    ] = 8000
    recent_messages_to_keep: Annotated[
        int, Rule("messages that stay as they are", low=0, high=100_000)
    ] = 10
    archive_to_knowledge_base: Annotated[
        bool, Rule("whether each summary becomes a document, which is found by later questions")
    ] = True


class BudgetSettings(Struct, frozen=True):
    """What models may cost; prices are yours to state, in whatever currency, and 0 is free."""

    daily_tokens: Annotated[
        int,
        Rule("tokens a knowledge base may use a day (UTC); 0 means no limit", low=0, high=10**12),
    ] = 0
    daily_cost: Annotated[
        float, Rule("what a knowledge base may cost a day (UTC); 0 means no limit", low=0, high=1e9)
    ] = 0.0
    input_price: Annotated[
        float, Rule("price of a million tokens sent to a chat model", low=0, high=1e6)
    ] = 0.0
    output_price: Annotated[
        float, Rule("price of a million tokens that a chat model writes", low=0, high=1e6)
    ] = 0.0
    embed_price: Annotated[
        float, Rule("price of a million tokens embedded or reranked", low=0, high=1e6)
    ] = 0.0
    transcribe_price: Annotated[float, Rule("price of a minute transcribed", low=0, high=1e6)] = 0.0


class ResidentSettings(Struct, frozen=True):
    """The background process that answers commands that read; see `memctl resident`."""

    enabled: Annotated[
        bool, Rule("let commands go through it, and have one beside watch and serve")
    ] = True
    idle_minutes: Annotated[
        int,
        Rule(
            "minutes without a command after which one that was started by hand ends; 0 for never",
            low=0,
            high=525_600,
        ),
    ] = 30
    memory_mb: Annotated[
        int, Rule("megabytes above which it drops its caches, or ends", low=200, high=1_048_576)
    ] = 1500


OriginKind = Literal["flag", "environment", "file", "default"]


class Origin(Struct, frozen=True):
    """Where a value came from: the kind of source, and its flag, variable or file."""

    kind: OriginKind
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".rstrip()


class Config(Struct, frozen=True):
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
    default_kb: Annotated[
        str, Rule("the knowledge base that is written to where a command names none")
    ] = "default"
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
    agent_models: tuple[tuple[OwnTask, str], ...] = ()
    """What the file of the agent that is named says instead of a knowledge base's models."""
    agent_chunks: tuple[tuple[str, int], ...] = ()
    """And instead of a knowledge base's ``chunk_size`` and ``chunk_overlap``."""
    origins: Mapping[str, Origin] = field(default_factory=dict)


SECTIONS: Mapping[str, type[Any]] = {
    name: type(default)
    for name in Config.__struct_fields__
    if isinstance(default := setting_default(Config, name), Struct)
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
        found |= {f"{name}.{key}": getattr(values, key) for key in setting_keys(section)}
    for name, source in config.sources.items():
        keys = setting_keys(OutsideSource)
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
