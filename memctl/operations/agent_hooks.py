"""What a coding agent's hooks ask for: memory before a conversation and a prompt, and its capture.

An agent runs a command at certain moments and gives it JSON about the moment.  No model is called
here, what is put in has a bound, and what memory gave is not taken in again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import KnowledgeBaseNotFound, NotFoundError, UsageError
from memctl.identity import DEFAULT_USER, conversations_of
from memctl.instants import is_ahead
from memctl.prompts import fenced
from memctl.readers.transcripts import (
    MEMORY_TAG,
    TranscriptTurn,
    read_transcript,
    title_of_turns,
    without_injected_text,
)

if TYPE_CHECKING:
    from datetime import datetime

    from memctl.knowledge_base import KnowledgeBase
    from memctl.operations.operation_context import OperationContext
    from memctl.sessions.conversations import Message
    from memctl.store.ledger.session_repositories import Session

Moment = Literal["start", "prompt", "reply", "stop"]
_MOMENTS: Mapping[str, Moment] = {
    "start": "start",
    "prompt": "prompt",
    "sessionstart": "start",
    "userpromptsubmit": "prompt",
    "beforesubmitprompt": "prompt",
    "beforeagent": "prompt",
    "afteragentresponse": "reply",
    "afteragent": "stop",
    "stop": "stop",
    "precompact": "stop",
    "precompress": "stop",
    "sessionend": "stop",
}
"""The agents' names of events at which they run a command, in lower case."""
_NAMES = {
    "start": "SessionStart",
    "prompt": "UserPromptSubmit",
    **{name.lower(): name for name in ("SessionStart", "UserPromptSubmit")},
    **{name.lower(): name for name in ("BeforeAgent", "AfterAgent", "PreCompress")},
}
"""What agents that are answered with the name of the moment call it."""
_EVENTS = "SessionStart, UserPromptSubmit, Stop, PreCompact, SessionEnd"
MAX_BYTES = 8_000
"""Of what is put in; Claude Code shows a model no more than 10,000 characters of a hook."""
_STANDING_TOKENS, _PROMPT_TOKENS = 1_000, 1_200
_LAST_TURNS = 4
_MAX_OF_A_TURN = 400


class HookReply(Struct, frozen=True):
    """What a hook came to."""

    moment: Moment
    text: str = ""
    """What is put in before the model reads on; "" for nothing."""
    captured: int = 0
    """How many turns were new."""


def moment_of(event: str) -> Moment:
    """Return which moment an agent means.

    Raises:
        UsageError: It is none that is known.
    """
    found = _MOMENTS.get(_event_key(event))
    if found is None:
        raise UsageError(f"there is no hook for {event[:60]!r}", f"there are {_EVENTS}")
    return found


def event_name(event: str, payload: Mapping[str, Any]) -> str:
    """Return what the agent calls a moment, however the command spells it.

    Start and prompt are called what the payload calls them, if it names the same moment.

    Raises:
        UsageError: It is none that is known.
    """
    moment, name = moment_of(event), payload.get("hook_event_name")
    if _event_key(event) in ("start", "prompt") and isinstance(name, str):
        event = name if _MOMENTS.get(_event_key(name)) == moment else event
    return _NAMES.get(_event_key(event), event)


def _event_key(event: str) -> str:
    return event.replace("-", "").replace("_", "").lower()


def handle_hook(
    context: OperationContext,
    event: str,
    payload: Mapping[str, Any],
    *,
    most_bytes: int = MAX_BYTES,
) -> HookReply:
    """Do what is to be done at a moment.

    Args:
        context: For whom.
        event: What the agent calls the moment.
        payload: The JSON that it gives.
        most_bytes: Of the text that is put in.

    Raises:
        UsageError: There is no such moment.
        UnreadableSource: The transcript cannot be read.
    """
    moment = moment_of(event)
    if moment == "start":
        return HookReply(moment, _prepare_text(context, _standing(context, payload), most_bytes))
    if moment == "prompt":
        prompt = _text_value(payload, "prompt")
        present = _session_of(payload)
        return HookReply(moment, memory_for_prompt(context, prompt, present, most_bytes=most_bytes))
    if context.read_only:
        return HookReply(moment)
    return HookReply(moment, captured=_capture(context, payload))


def _text_value(payload: Mapping[str, Any], *keys: str) -> str:
    """Return the first of some values that is a text with something in it."""
    found = (payload.get(key) for key in keys)
    return next((each for each in found if isinstance(each, str) and each.strip()), "")


def _session_of(payload: Mapping[str, Any]) -> str:
    return _text_value(payload, "session_id", "conversation_id")


# --- put in ---------------------------------------------------------------------------------------


def _standing(context: OperationContext, payload: Mapping[str, Any]) -> str:
    """Return what to know without a question, and what the last conversation came to."""
    try:
        bases = context.reading()
    except KnowledgeBaseNotFound:
        return ""
    found = bases.queries.standing_context(
        budget=_STANDING_TOKENS,
        user=context.identity.user,
        agent=context.identity.agent,
        filters=context.filters(),
    ).text
    digests = [_last_session(context, base, _session_of(payload)) for base in bases]
    known = [text for _, text in sorted(filter(None, digests), reverse=True)[:1]]
    return "\n\n".join(part for part in (found, *known) if part)


def _last_session(
    context: OperationContext, base: KnowledgeBase, present: str
) -> tuple[str, str] | None:
    """Return when the conversation before this one was, and what it came to."""
    namespaces = context.namespaces("conversations")
    for session in base.sessions.list(namespaces=namespaces, limit=3):
        if session.session_id == present or not session.message_count:
            continue
        text = session.summary.strip()
        if not text:
            turns = base.sessions.turns(session, last=_LAST_TURNS)
            text = "\n".join(f"{turn.sender}: {_shorten(turn.content)}" for turn in turns)
        heading = f"Last session ({session.last_at:%Y-%m-%d})"
        name = f": {session.title}" if session.title else ""
        return session.last_at.isoformat(), f"{heading}{name}\n{text}"
    return None


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_OF_A_TURN else f"{line[:_MAX_OF_A_TURN]}…"


def memory_for_prompt(
    context: OperationContext, prompt: str, present: str = "", *, most_bytes: int = MAX_BYTES
) -> str:
    """Return what is to be put in with a prompt; "" for most, which need no memory.

    Args:
        context: For whom.
        prompt: What the user writes.
        present: The conversation, whose own turns the model has before it.
        most_bytes: Of the text.
    """
    return _prepare_text(context, _relevant_text(context, prompt, present), most_bytes)


def _relevant_text(context: OperationContext, prompt: str, present: str) -> str:
    """Return what bears on a prompt; for one that needs no memory, nothing is opened."""
    from memctl.search.answering.memory_need import extract_question, is_instruction, refers_back

    prompt = without_injected_text(prompt)
    if not prompt or prompt.startswith("/"):
        return ""
    referring = refers_back(prompt, context.home.config.auto_context)
    if not referring and is_instruction(extract_question(prompt) or prompt):
        return ""
    try:
        bases = context.reading()
    except KnowledgeBaseNotFound:
        return ""
    filters = context.filters()
    if present:
        filters = replace(filters, session=present, other_sessions=True)
    return bases.context(prompt, budget=_PROMPT_TOKENS, filters=filters, auto=True).text


def _prepare_text(context: OperationContext, text: str, most_bytes: int) -> str:
    """Return a text as it is put into a prompt, and note what it says as known from memory."""
    if not text:
        return ""
    tag = f"</{MEMORY_TAG}>"
    shell = f"<{MEMORY_TAG}>\n{fenced([''])}\n{tag}"
    room = most_bytes - len(shell.encode())
    data = text.replace(tag, "").encode("utf-8", "replace")
    if len(data) > room:
        data = data[: max(room, 0)].rpartition(b"\n")[0] or data[: max(room, 0)]
    shown = data.decode("utf-8", "ignore").strip()
    if not shown:
        return ""
    if not context.read_only:
        context.writing().sessions.note_injected(shown)
    return f"<{MEMORY_TAG}>\n{fenced([shown])}\n{tag}"


# --- captured -------------------------------------------------------------------------------------


def _capture(context: OperationContext, payload: Mapping[str, Any]) -> int:
    """Append what was said since the last time; return how many turns were new."""
    session_id = _session_of(payload)
    if not session_id:
        raise UsageError("the hook says no session", "session_id or conversation_id is missing")
    path = _text_value(payload, "transcript_path", "agent_transcript_path")
    turns: Sequence[TranscriptTurn] = ()
    with suppress(ValueError, RuntimeError):  # a NUL, or the home of an unknown user
        if path and Path(path).expanduser().is_file():
            turns = read_transcript(Path(path).expanduser(), session_id).turns
    if not turns:
        turns = _payload_turns(payload)
    return capture_turns(context, session_id, turns)


def capture_turns(
    context: OperationContext, session_id: str, turns: Sequence[TranscriptTurn]
) -> int:
    """Append the turns to a conversation that it does not have; return how many those are.

    Args:
        context: For whom.
        session_id: The conversation, which is begun where it is not there.
        turns: What was said, known by the ids of the turns.
    """
    if not turns:
        return 0
    base = context.writing()
    session = _session(context, base, session_id, turns)
    known = {turn.external_id for turn in base.sessions.turns(session)}
    new = [_message(turn, context.now) for turn in turns if turn.id not in known]
    if new:
        base.sessions.say(session, *new)
    return len(new)


def _payload_turns(payload: Mapping[str, Any]) -> Sequence[TranscriptTurn]:
    """Return the turn that the hook itself tells, where there is no transcript to be read."""
    number = _text_value(payload, "generation_id", "turn_id", "timestamp")
    if not number:
        return ()
    turns = (
        ("user", _text_value(payload, "prompt")),
        ("assistant", _text_value(payload, "prompt_response", "last_assistant_message", "text")),
    )
    return [
        TranscriptTurn(f"{number}-{sender}", sender, content, None)
        for sender, raw in turns
        if (content := without_injected_text(raw) if sender == "user" else raw.strip())
    ]


def _session(
    context: OperationContext,
    base: KnowledgeBase,
    session_id: str,
    turns: Sequence[TranscriptTurn],
) -> Session:
    user = context.identity.user
    place = conversations_of(context.home.config.namespaces, user or DEFAULT_USER)
    try:
        return base.sessions.get(session_id, namespace=place)
    except NotFoundError:
        title = title_of_turns(turns)
        return base.sessions.start(session_id, user=user, agent=context.identity.agent, title=title)


def _message(turn: TranscriptTurn, now: datetime) -> Message:
    """Return a turn as a message; one that a clock dated ahead was said now."""
    from memctl.sessions.conversations import Message

    at = None if turn.at is None or is_ahead(turn.at, now) else turn.at
    return Message(sender=turn.sender, content=turn.content, at=at, external_id=turn.id)
