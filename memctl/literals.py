"""The words that some settings and options may be; apart, so that knowing them costs nothing."""

from __future__ import annotations

from typing import Literal

ChunkStrategy = Literal["recursive", "semantic"]
After = Literal["move", "keep", "delete"]
AccessLevel = Literal["read", "write"]
"""What an agent may do with a knowledge base; who may write may read."""
StoredStatus = Literal["active", "paused", "archived"]
LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "text", "json"]
Mode = Literal["hybrid", "keyword", "vector", "graph", "agentic"]
DEFAULT_HOPS, MAX_HOPS = 2, 4
"""How many steps the mode ``graph`` goes along names, and how many it goes at most."""
DEFAULT_ROUNDS, MAX_ROUNDS = 3, 5
"""Rounds of search in the mode ``agentic``: as many by default, and as many at most."""
DEFAULT_COMMUNITIES, MAX_COMMUNITIES = 3, 10
"""Communities that the mode ``graph`` shows: as many by default, and as many at most."""
Sort = Literal["created", "known", "importance", "accessed", "relevance"]
"""What listings are sorted by; ``known`` is when it became known here, and ``relevance`` is
importance that fades as a memory gets older."""
DocumentSort = Literal["created", "importance"]
Fusion = Literal["zscore", "minmax", "simple", "rrf", "weighted"]
Duplicates = Literal["exact", "near", "keep"]
"""What is folded of memories that say the same: those in the same words, also those in nearly the
same, or nothing."""
WhenUnavailable = Literal["wait", "builtin"]
Task = Literal["understand", "consolidate", "answer", "embed", "rerank", "transcribe", "image"]
"""What models do; each task can have a model of its own."""
OwnTask = Literal["understand", "consolidate", "answer", "rerank", "transcribe", "image"]
"""The tasks for which a knowledge base or an agent can have models of its own: all but the vectors,
which stay as they are."""
Purpose = Literal[
    "understand", "consolidate", "answer", "embed", "rerank", "transcribe", "image", "compare",
    "feedback", "improve",
]  # fmt: skip
"""What a call is for, as accounts tell it: facts are compared by the model that understands."""
CONTRADICTS = "contradicts"
"""How two memories hang together that cannot both hold."""
QueryKind = Literal["query", "context"]
EXCHANGE = "conversation_turn"
"""The type of memories that are a message of a user with its reply."""
ARCHIVED = "conversation"
"""The type of memories that are passages of the summary of a conversation."""
QUOTED = "quoted"
"""The type of passages that a message quotes from the one that it answers."""
QUOTING_READERS = ("email/", "mbox/")
"""Readers that leave quoted messages and signatures out of the passages."""
STATED = "stated"
"""The method of what a person has stated or edited by hand; a model's word does not end it."""
RESTATING_TYPES = ("gist", EXCHANGE)
"""The types of memories that state nothing which their evidence does not state in these words."""
DATED_BY_FILE = "dated_by_file"
"""Where the metadata of a document says when its file was written, if nothing else tells its day: a
file that is copied, cloned or unpacked may look newer than what it says."""
NOT_IN_FORCE = (
    r"(?:superseded|obsolete|outdated|withdrawn|deprecated|revoked|repealed|rescinded|replaced"
    r"|überholt|veraltet|ersetzt|aufgehoben|obsol[eè]te|remplacée?|abrogée?|obsolet[oa]"
    r"|sustituid[oa]|derogad[oa]|reemplazad[oa])\b"
)
"""A pattern of the status of a document that is no longer in force."""
DAILY_SUMMARY, LOOKING_BACK = "daily summary", "looking back"
OWN_SOURCES = (DAILY_SUMMARY, LOOKING_BACK)
"""How the sources begin of what is written by itself: it says again what others say, and which
questions found no answer, so that it is no evidence of anything."""
SUMMARY_HEADINGS = {
    "decision": "Decisions",
    "plan": "Plans",
    "important_fact": "Important facts",
    "memories": "Kept",
    "fact": "Facts",
    "preference": "Preferences",
}
"""What stands above the statements of each type in the summary of a conversation."""
LEARNING = "learning"
"""The type of memories that are lessons from experience."""
LearningOutcome = Literal["success", "failure"]
"""What came of what a learning is about."""
AccessKind = Literal["query", "context", "show", "tool"]
"""How a memory was read."""
QueryStatus = Literal["answered", "unsure", "nothing", "failed"]
QuerySplit = Literal["fusion", "reranker", "mode", "kb", "user"]
"""What the numbers of a query log are split by."""
Verdict = Literal["good", "bad"]
"""How good what a question gave was."""
AutoContextMode = Literal["selective", "always", "off"]
Headings = Literal["plain", "seed"]
"""What the parts of the standing context are called: in plain words, or "Memory Context"."""
DocType = Literal[
    "text", "markdown", "conversation", "pdf", "web", "email", "table", "code", "image", "audio",
    "video", "office", "other",
]  # fmt: skip
"""What a document is, whatever its format."""
SourceType = Literal["user", "agent", "system", "tool", "workflow"]
"""Who a memory is from."""
MemoryKind = Literal["factual", "experiential", "working"]
"""What a memory keeps: a fact, an event, or work in progress."""

InsightKind = Literal[
    "change", "contradiction", "recurring", "total", "overdue", "deadline", "connection", "common"
]
"""What an insight says; only a model writes what is ``common`` to a group of memories."""

Tier = Literal["working", "short_term", "long_term", "shared"]
"""Where a value is kept: for minutes, for hours, for good, or in a pool."""
WorkingPlace = Literal[
    "value", "task_state", "step_result", "conversation", "tool_state", "scratch_pad"
]
"""What a value of working memory is."""
ShortTermType = Literal["task_context", "conversation", "tool_result", "reflection", "observation"]
KnowledgeBaseKind = Literal[
    "agent_memory", "knowledge_base", "shared_context", "tool_cache", "project_context"
]
"""What a knowledge base is for; listed, with no further effect."""
KnowledgeBaseScope = Literal["agent", "account", "team", "global"]
"""Whom a knowledge base is for; listed, with no further effect."""

PoolType = Literal["shared", "agent_private", "team_shared", "task_scoped", "global"]
"""Whom a shared pool is for, coarsely; everybody may read a global one."""
Visibility = Literal["global", "account", "team", "agent", "task"]
"""How widely a pool is meant to be known; says nothing of rights."""
Lifetime = Literal["execution", "session", "persistent"]
"""How long a pool lives, relative to the work around it."""
Eviction = Literal["oldest", "least_read", "refuse"]
"""What goes from a pool that would become too big."""

SkillCategory = Literal[
    "code_generation", "code_review", "testing", "debugging", "deployment", "documentation",
    "analysis", "communication", "planning", "research", "data_processing", "security",
    "monitoring", "optimization", "integration", "automation", "design", "architecture",
    "project_management", "devops", "operations",
]  # fmt: skip
SkillStatus = Literal["draft", "active", "deprecated", "archived"]
ConflictType = Literal["overlap", "contradiction", "dependency", "version_mismatch", "naming"]
"""What two skills have against each other, or a skill against what it requires."""
Severity = Literal["low", "medium", "high", "critical"]
ConflictStatus = Literal["detected", "acknowledged", "resolved", "dismissed"]
ChangeType = Literal["major", "minor", "patch", "hotfix", "experimental"]
"""How a version of a skill differs from the one before."""
ProposalStatus = Literal[
    "draft", "submitted", "under_review", "approved", "created", "rejected", "expired"
]
"""How far the proposal of a skill has come; ``created`` is one whose skill has been made."""

SessionStatus = Literal["open", "compressed", "archived", "ended"]
"""``compressed`` goes on like ``open``; its earlier turns are summarised."""
MessageType = Literal["text", "image", "audio", "video", "file"]
Direction = Literal["in", "out", "both"]
"""Where a relation leads: to a name, away from it, or either."""
WorkKind = Literal["document", "comparison", "insight", "answer"]
"""What a caller can do in place of a model."""
Resource = Literal["memory", "knowledge_base"]
RESOURCES: tuple[Resource, ...] = ("memory", "knowledge_base")
"""What an agent can have."""
ToolFormat = Literal["openai", "anthropic", "gemini", "mcp"]
ExportFormat = Literal["arrow", "parquet", "jsonl", "csv"]
GraphFormat = Literal["graphml", "dot"]

RECORD_READER = "record/1"
"""The reader of texts that come as such, without a file."""
LISTING_READER = "listing/1"
"""The reader of the document that says what a file of many units holds."""
SESSION_READER = "session/1"
"""The reader of what is said in a conversation as it goes on."""
REFERRING_WORDS = ("previous", "earlier", "discussed", "mentioned", "last time", "remind")
"""Words by which a question refers back to what was said before, unless a setting has others."""
