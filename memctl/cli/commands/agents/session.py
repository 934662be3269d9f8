"""memctl session: conversations, turn by turn."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal

import typer
from msgspec.structs import asdict

from memctl.cli.arguments import input_file, parse_instant, parse_path, read_question, refuse_empty
from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import (
    DryRun,
    KnowledgeBaseOption,
    KnowledgeBasesOption,
    NamespacesOption,
    Output,
    UserOption,
    Yes,
    command,
    flag,
    group,
)
from memctl.cli.commands.content.ingest import raise_failures, reporting_a_stop, show_report
from memctl.cli.paging import Page
from memctl.cli.rendering.output_formats import (
    Column,
    emit,
    emit_each,
    emit_one,
    format_instant,
    print_facts,
    print_json,
    print_line,
    print_paragraph,
    print_text,
    to_plain,
    with_kb_column,
)
from memctl.cli.rendering.terminal_text import format_moment, one_line, shortened
from memctl.errors import MemctlError, NotFoundError, NothingFound, PartialFailure, UsageError
from memctl.formatting import format_count
from memctl.literals import MessageType, SessionStatus

if TYPE_CHECKING:
    from pathlib import Path

    from memctl.knowledge_base import KnowledgeBase
    from memctl.sessions.compression import Compression
    from memctl.store.ledger.session_repositories import Session, Turn

app = group("session", "Conversations: carried on, listed, summarised and forgotten.")

Id = Annotated[
    str,
    typer.Argument(metavar="SESSION", help="The conversation's id, or enough of its beginning."),
]
Chosen = Annotated[
    str | None,
    typer.Argument(metavar="[SESSION]", help="The conversation's id, or enough of its beginning."),
]
Before = Annotated[
    str | None,
    typer.Option("--before", metavar="DATE", help="All whose last message is older."),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace", metavar="NAME", help="Where it is, if several have one of that id."
    ),
]
NewNamespace = Annotated[
    str | None,
    typer.Option("--namespace", metavar="NAME", help="Where it goes; by default as the user's do."),
]
Sender = Literal["user", "agent", "assistant", "system", "tool"]

_LIST = (
    Column("session_id", "SESSION"),
    Column("status", "STATUS"),
    Column("user_id", "USER"),
    Column("agent_id", "AGENT"),
    Column("message_count", "MESSAGES", right=True),
    Column("last_at", "LAST", format_instant),
    Column("title", "TITLE", lambda text: shortened(text, 40)),
)
_START = flag("--start", "Begin the conversation where it is not there.")
_SHOWN_TURNS = 20
_MAX_NAMED = 5


@command(
    app,
    "start",
    """
    memctl session start --user ann --agent helper
    memctl session start --id standup-1 --title "Monday standup"
    """,
    identity=True,
)
def start(
    context: CommandContext,
    session_id: str | None = typer.Option(
        None, "--id", metavar="ID", help="Its id; by default one is made."
    ),
    title: str = typer.Option("", "--title", metavar="TEXT", help="What it is called."),
    namespace: NewNamespace = None,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Begin a conversation, and print its id.

    -o json prints the whole conversation.
    """
    refuse_empty({"--id": session_id, "--namespace": namespace})
    with context.writing(kb) as base:
        session = base.sessions.start(
            session_id,
            namespace=namespace,
            title=title,
        )
    if output is None:
        typer.echo(session.session_id)
    else:
        emit_one(session, output, lambda: typer.echo(session.session_id))


@command(
    app,
    "say",
    """
    memctl session start --id standup-1
    memctl session say standup-1 "we decided to ship on Friday" --by user
    memctl session say standup-1 "look at this" --by user --file cat.png
    echo "noted" | memctl session say standup-1 - --by agent
    """,
    identity=True,
)
def say(
    context: CommandContext,
    id_: str = typer.Argument(..., metavar="SESSION", help="The conversation's id, in full."),
    text: str = typer.Argument("", metavar="TEXT", help="The message; - is stdin."),
    by: Sender = typer.Option("user", "--by", help="Who says it."),
    type_: MessageType | None = typer.Option(
        None, "--type", help="What kind of message; by default as its file is."
    ),
    file: str | None = typer.Option(
        None, "--file", metavar="FILE", help="A picture, recording or file that comes with it."
    ),
    link: bool = flag("--link", "Leave that file where it is instead of copying it."),
    start: bool = _START,
    namespace: Namespace = None,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Add a message to a conversation that was begun.

    It is on disk when the command ends, and found by the next query.  A conversation that had ended
    is resumed.

    `stored` says that the message is on disk.  A message of the user with a trigger, such as
    `remember: ...`, is kept as a memory of its own, too: `success`, `memory_type`, `text` and
    `tags` tell what.  Without one, `success` is false, which is no failure.  See [triggers] of the
    settings.
    """
    from memctl.sessions.conversations import Message

    words = sys.stdin.read().strip() if text == "-" else text
    media = None if file is None else input_file(file, "--file takes a picture, recording or file")
    opened = context.writing(kb) if start else context.writing_existing(kb)
    with opened as base:
        find = base.sessions.get_or_start if start else base.sessions.get
        session = find(id_, namespace=namespace)
        message = Message(sender=by, content=words, message_type=type_, media=media, links=link)
        turn = base.sessions.say(session, message)[0]
        statement = base.sessions.captured(turn)
        _compress_if_due(context, base, session)
    result = {**to_plain(turn), "stored": True, **statement}
    emit_one(result, output, lambda: _show_said(context, turn, statement))


@command(
    app,
    "record",
    """
    memctl session record standup-1 - < messages.jsonl
    memctl session record chat-4711 --start --user ann < messages.jsonl
    my-chat-bot | memctl session record -
    """,
    identity=True,
)
def record(
    context: CommandContext,
    id_: str = typer.Argument(
        "-", metavar="[SESSION]", help="The conversation; by default a new one is begun."
    ),
    lines: str = typer.Argument("-", metavar="-", help="Messages are read from standard input."),
    start: bool = _START,
    namespace: NewNamespace = None,
    kb: KnowledgeBaseOption = None,
) -> None:
    """Add messages from a pipe as they come, one JSON object a line.

    A line has `sender` and `content`, and may have `type`, `at`, `turn` and `id`; a line with the
    `id`, or the `turn`, and the words of an earlier one is a duplicate.  For each, one line is
    printed when it is on disk, with what is kept of it because its user asked for that.  A line
    that is no message is reported by its number, the others are added, and the exit code is 3.
    """
    if lines != "-":
        raise UsageError(f"messages come from standard input, not from {lines}", "use -")
    failed = 0
    with context.writing(kb) as base:
        if id_ == "-":
            session = base.sessions.start(namespace=namespace)
            context.say(f"session {session.session_id}")
        else:
            find = base.sessions.get_or_start if start else base.sessions.get
            session = find(id_, namespace=namespace)
        for number, line in _lines(sys.stdin.buffer):
            failed += not _record(context, base, session, number, line)
        if base.store.ledger.turns.has_pending():
            base.sessions.fold(session)
    if failed:
        raise PartialFailure(
            f"{format_count(failed, 'line')} not recorded",
            'a line is {"sender": "user", "content": "..."}',
        )


def _record(
    context: CommandContext, base: KnowledgeBase, session: Session, number: int, line: bytes
) -> bool:
    """Add the message of a line and print what was stored; return False if it is no message."""
    from memctl.sessions.imports import recorded_message

    try:
        message = recorded_message(line)
        turn = base.sessions.say(session, message)[0]
    except NotFoundError:
        raise
    except (MemctlError, ValueError) as error:
        print_line({"line": number, "error": str(error)})
        context.say(f"error: line {number}: {one_line(str(error))}")
        sys.stdout.flush()
        return False
    result: dict[str, Any] = {"session_id": turn.session_id, "turn": turn.turn, "at": turn.at}
    print_line({"line": number, **result, "stored": True, **base.sessions.captured(turn)})
    sys.stdout.flush()
    _compress_if_due(context, base, session)
    return True


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    from memctl.sessions.conversations import LONGEST_MESSAGE

    number = 0
    while line := stream.readline(2 * LONGEST_MESSAGE):
        number += 1
        if line.strip():
            yield number, line


@command(
    app,
    "list",
    """
    memctl session list
    memctl session list --user ann --status open -o json
    """,
    identity=True,
)
def list_(
    context: CommandContext,
    status: SessionStatus | None = typer.Option(None, "--status", help="Only of this status."),
    namespace: NamespacesOption = None,
    kb: KnowledgeBasesOption = None,
    page: Page = Page(50),
    output: Output = None,
) -> None:
    """List conversations, the latest first."""
    from memctl.store.ledger.session_repositories import Session

    with context.reading(kb) as bases:
        found = [
            (base.name, each)
            for base in bases
            for each in base.sessions.list(
                user=context.config.user,
                namespaces=namespace or (),
                status=status,
                limit=page.needed,
            )
        ]
        found.sort(key=lambda pair: pair[1].last_at, reverse=True)
        rows = [{"kb": name, **to_plain(each)} for name, each in found]
        columns = with_kb_column(_LIST, len(bases))
        emit(context.page(rows, page), columns, output, Session, ("kb",))
    if not rows:
        context.hint("memctl session start begins one")


@command(
    app,
    "show",
    """
    memctl session show standup-1
    memctl session show standup-1 --last 5 -o json
    """,
    identity=True,
)
def show(
    context: CommandContext,
    id_: Id,
    last: int | None = typer.Option(
        None, "--last", metavar="N", min=1, help="Only the last messages."
    ),
    namespace: Namespace = None,
    kb: KnowledgeBasesOption = None,
    output: Output = None,
) -> None:
    """Show a conversation with its messages."""
    with context.reading(kb) as bases:
        base, session = _find_session(bases, id_, namespace)
        turns = base.sessions.turns(session, last=last)
    record = {**to_plain(session), "turns": [to_plain(turn) for turn in turns]}
    emit_one(record, output, lambda: _show(context, session, turns))


def _show(context: CommandContext, session: Session, turns: Any) -> None:
    out = context.console
    out.print(one_line(session.title or session.session_id), style="bold")
    facts = {
        "id": session.session_id,
        "status": session.status,
        "user": session.user_id,
        "agent": session.agent_id,
        "namespace": session.namespace,
        "began": format_moment(session.started_at),
        "last message": format_moment(session.last_at),
        "messages": session.message_count,
    }
    print_facts(out, {key: value for key, value in facts.items() if value is not None})
    if session.summary:
        out.print("\nsummary", style="dim")
        for line in session.summary.splitlines():
            print_paragraph(out, line, indent=2)
    shown = turns[-_SHOWN_TURNS:]
    if len(shown) < len(turns):
        out.print(f"\n  {len(turns) - len(shown)} messages before; -o json shows all", style="dim")
    for turn in shown:
        _show_turn(context, turn)


def _show_turn(context: CommandContext, turn: Turn) -> None:
    out = context.console
    media = f" [{turn.message_type}: {turn.media}]" if turn.media else ""
    out.print(f"\n{turn.turn}  {one_line(turn.sender)}  {format_moment(turn.at)}", style="dim")
    print_paragraph(out, f"{turn.content}{media}".strip(), indent=2)


@command(app, "end", "memctl session end standup-1", identity=True)
def end(
    context: CommandContext,
    id_: Id,
    namespace: Namespace = None,
    dry_run: DryRun = False,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """End a conversation: it gets its title and a summary."""
    with _open_session(context, id_, namespace, kb) as (base, session):
        ended = session if dry_run else base.sessions.end(session)
    done = "would end" if dry_run else "ended"
    emit_one(ended, output, lambda: context.console.print(f"{done} {ended.session_id}"))


@command(
    app,
    "compress",
    """
    memctl session compress standup-1
    memctl session compress standup-1 --keep 20 --dry-run
    """,
    identity=True,
)
def compress(
    context: CommandContext,
    id_: Id,
    keep: int | None = typer.Option(
        None, "--keep", metavar="N", min=0, help="Messages that stay as they are; 10 by default."
    ),
    namespace: Namespace = None,
    dry_run: DryRun = False,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Summarise all but the latest messages, and archive that.

    The messages stay and are found as before. The settings in [compression] say when this happens
    automatically.
    """
    with _open_session(context, id_, namespace, kb) as (base, session):
        made = base.sessions.compress(session, keep=keep, dry_run=dry_run)
    emit_one(made, output, lambda: _show_compression(context, made))


@command(
    app,
    "archive",
    """
    memctl session archive standup-1
    memctl session archive standup-1 --dry-run
    memctl session archive --user ann --before 2026-01-01
    """,
    identity=True,
)
def archive(
    context: CommandContext,
    id_: Chosen = None,
    before: Before = None,
    namespace: Namespace = None,
    dry_run: DryRun = False,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Summarise all of a conversation and put it away.

    The messages stay and are found as before.  Without a conversation, --user takes all of that
    user, and --before those whose last message is older, unless they are archived already.
    """
    if id_ is None and context.named_user is None and before is None:
        raise UsageError("archive which conversations?", "name one, or --user NAME, --before DATE")
    with context.writing_existing(kb) as base:
        found = _choose_sessions(base, id_, None, before, namespace)
        if id_ is None:
            found = [each for each in found if each.status != "archived"]
        made = [base.sessions.archive(each, dry_run=dry_run) for each in found]
    for each in found:
        if not each.message_count:
            context.say(f"note: nothing was said in {each.session_id}, so nothing is archived")
    if id_ is not None:
        emit_one(made[0], output, lambda: _show_compression(context, made[0]))
    else:
        emit_each(made, output, lambda each: _show_compression(context, each))


def _show_compression(context: CommandContext, compression: Compression) -> None:
    verb = "would summarise" if compression.dry_run else "summarised"
    messages = format_count(compression.messages, "message")
    text = f"{verb} {messages}, {compression.kept} stay as they are"
    context.console.print(f"{compression.session_id}: {text}")
    if compression.document_id:
        context.console.print(f"  archived as {compression.document_id}", style="dim")
    for line in compression.summary.splitlines():
        print_paragraph(context.console, line, indent=2)


@command(app, "summary", "memctl session summary standup-1", identity=True)
def summary(
    context: CommandContext,
    id_: Id,
    namespace: Namespace = None,
    kb: KnowledgeBasesOption = None,
    output: Output = None,
) -> None:
    """Print the summary of a conversation, made now if it has none."""
    with context.reading(kb) as bases:
        base, session = _find_session(bases, id_, namespace)
        text, through = session.summary, session.summarized_through
        if not text and session.message_count:
            text = base.sessions.compress(session, keep=0, dry_run=True).summary
    result = {
        "session_id": session.session_id,
        "namespace": session.namespace,
        "summary": text,
        "summarized_through": through,
    }
    emit_one(result, output, lambda: context.console.print(text or "nothing was said yet"))


@command(
    app,
    "recall",
    """
    memctl session recall today "what did we discuss about the lease?"
    memctl session recall today "remind me of the door code" -o json
    """,
    identity=True,
)
def recall(
    context: CommandContext,
    id_: Id,
    message: str = typer.Argument(..., metavar="MESSAGE", help="The message; - is stdin."),
    namespace: Namespace = None,
    kb: KnowledgeBasesOption = None,
    exit_code: bool = flag("--exit-code", "Exit with 4 when nothing was found."),
    output: Output = None,
) -> None:
    """Print what other conversations say of a message.

    It is empty unless the message refers to what was before ("what did we discuss about ...") and
    something clearly relevant is known.  See [auto_context] of the settings.
    """
    with context.reading(kb) as bases:
        base, session = _find_session(bases, id_, namespace)
        found = base.sessions.recall(session, read_question([message]))
    if output not in (None, "table"):
        emit_one(found, output, lambda: None)
    elif found.text:
        print_text(found.text)
    if not found.text:
        context.hint(f"nothing of other conversations: {found.why}")
        if exit_code:
            raise NothingFound("nothing was found")


@command(
    app,
    "prompt",
    """
    memctl session prompt today "what did we discuss about the lease?"
    memctl session prompt today "and now?" --system system.md | jq length
    """,
    identity=True,
)
def prompt(
    context: CommandContext,
    id_: Id,
    message: str = typer.Argument(..., metavar="MESSAGE", help="The new message; - is stdin."),
    system: str | None = typer.Option(
        None, "--system", metavar="FILE", help="A file with the system prompt."
    ),
    namespace: Namespace = None,
    kb: KnowledgeBasesOption = None,
) -> None:
    """Print the messages to send to a model, as JSON.

    They are the system prompt, the summary of what is no longer in the window, what other
    conversations say where the message refers to them, the messages that the summary does not stand
    for, and the new one.  The new one is not added to the conversation: `memctl session say` does
    that.
    """
    text = ""
    if system is not None:
        file = input_file(system, "--system takes a file with the system prompt")
        text = file.read_text(encoding="utf-8", errors="replace").strip()
    with context.reading(kb) as bases:
        base, session = _find_session(bases, id_, namespace)
        print_json(base.sessions.prompt(session, read_question([message]), text))


@command(
    app,
    "import",
    """
    memctl session import conversations.json --user ann
    memctl session import ~/.claude/projects/boat/5f0c0a9e.jsonl
    memctl session import chat.txt --id standup-1 --dry-run
    """,
    identity=True,
)
def import_(
    context: CommandContext,
    files: list[str] = typer.Argument(..., metavar="FILE", help="Files of conversations."),
    session_id: str | None = typer.Option(
        None, "--id", metavar="ID", help="The conversation of all; by default as the files say."
    ),
    namespace: NewNamespace = None,
    dry_run: DryRun = False,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Import conversations from files.

    These are exports of ChatGPT, Claude, Telegram, Slack and WhatsApp, transcripts of coding agents
    (Claude Code, Codex, Gemini, aider, Cursor), lists of messages with `role` and `content` as JSON
    or JSON lines, and chats written down as `Ann: good morning`.  Messages that are known are left
    alone, so that a file may come again with more.
    """
    refuse_empty({"--id": session_id, "--namespace": namespace})
    if "-" in files:
        raise UsageError("session import takes files", "from a pipe: memctl session record ID")
    paths = [parse_path(each) for each in files]
    with context.open_for_dry_run(kb) if dry_run else context.writing(kb) as base:
        with (
            context.progress("importing") as listener,
            reporting_a_stop(context, base.name, output),
        ):
            report = base.sessions.import_files(
                paths,
                namespace=namespace,
                session_id=session_id,
                dry_run=dry_run,
                progress=listener,
            )
        show_report(context, base.name, report, output)
        twice = [] if dry_run else _documents_of(base, paths)
    for id_ in twice:
        context.suggest(f"a document holds the same: memctl document delete {id_} -k {base.name}")
    if report.sessions:
        names = [one_line(name) for name in report.sessions[:_MAX_NAMED]]
        more = len(report.sessions) - len(names)
        listed = ", ".join([*names, *([f"{more:,} more"] if more else [])])
        context.say(f"{'session' if len(report.sessions) == 1 else 'sessions'}: {listed}")
    is_all = len(paths) == 1 and not report.ingested + report.skipped
    raise_failures(report, one_input=is_all and len(report.outcomes) == 1)


@command(
    app,
    "forget",
    """
    memctl session forget standup-1
    memctl session forget --user ann --before 2026-01-01 --yes
    """,
)
def forget(
    context: CommandContext,
    id_: Chosen = None,
    user: UserOption = None,
    before: Before = None,
    namespace: Namespace = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Remove conversations for good, and search what is left.

    With them go their messages, memories, insights, archive documents and the copies of their
    files; see memctl forget.
    """
    from memctl.cli.commands.content.forget import raise_remaining, show_forgotten

    if id_ is None and user is None and before is None:
        raise UsageError("forget which conversations?", "name one, or --user NAME, --before DATE")
    with context.writing_existing(kb) as base:
        found = _choose_sessions(base, id_, user, before, namespace)
        names = ", ".join(each.session_id for each in found[:5]) + (", ..." if found[5:] else "")
        if not dry_run:
            what = format_count(len(found), "conversation")
            context.confirm(f"forget {what} for good ({names})?", yes=yes)
        reports = [base.sessions.forget(each, dry_run=dry_run) for each in found]
    rows = [
        {"session_id": session.session_id, "namespace": session.namespace, **asdict(report)}
        for session, report in zip(found, reports, strict=True)
    ]
    shown = iter(reports)
    emit_each(
        rows,
        output,
        lambda row: show_forgotten(context, next(shown), f"conversation {row['session_id']}"),
    )
    raise_remaining([left for report in reports for left in report.left])


def _choose_sessions(
    base: KnowledgeBase,
    id_: str | None,
    user: str | None,
    before: str | None,
    namespace: str | None,
) -> list[Session]:
    """Return the conversation of an id, else those of a user and before a date.

    Raises:
        NotFoundError: There are none.
        UsageError: An id and a date are given.
    """
    from memctl.instants import utc_now

    if id_ is not None:
        if before is not None:
            raise UsageError("a conversation and --before do not go together", "leave out one")
        return [_find_session([base], id_, namespace, user)[1]]
    until = parse_instant(before, utc_now()) if before else None
    namespaces = (namespace,) if namespace else ()
    found = [
        each
        for each in base.sessions.list(user=user, namespaces=namespaces)
        if until is None or each.last_at < until
    ]
    if not found:
        raise NotFoundError("there are no such conversations", "memctl session list shows them")
    return found


# --- inside --------------------------------------------------------------------------------------


def _compress_if_due(context: CommandContext, base: KnowledgeBase, session: Session) -> None:
    for made in base.sessions.compress_now_or_later(session):
        context.say(f"note: summarised {format_count(made.messages, 'message')} of it")


def _documents_of(base: KnowledgeBase, files: Iterable[Path]) -> list[str]:
    """Return the documents that were made of files, conversations apart."""
    from memctl.literals import SESSION_READER
    from memctl.records import Filters

    names = [str(path.absolute()) for path in files]
    return [
        row["id"]
        for name in names
        for row in base.documents.list(Filters(source=name)).to_pylist()
        if row["source"] == name and row["reader"] != SESSION_READER
    ]


def _show_said(context: CommandContext, turn: Turn, statement: Mapping[str, Any]) -> None:
    context.console.print(f"{turn.session_id}: turn {turn.turn}")
    if statement["success"]:
        tags = " ".join(f"#{tag}" for tag in statement["tags"])
        shown = one_line(f"{statement['text']} {tags}".strip(), 200)
        context.console.print(f"  kept as {statement['memory_type']}: {shown}", style="dim")


@contextmanager
def _open_session(
    context: CommandContext, id_: str, namespace: str | None, kb: list[str] | None
) -> Iterator[tuple[KnowledgeBase, Session]]:
    """Open the knowledge base of a conversation to change it; give both."""
    with context.writing_existing(kb) as base:
        yield _find_session([base], id_, namespace)


def _find_session(
    bases: Iterable[KnowledgeBase], id_: str, namespace: str | None, user: str | None = None
) -> tuple[KnowledgeBase, Session]:
    """Return the first knowledge base that has a conversation, and the conversation.

    Where none has that id, it is the one whose id begins so.

    Raises:
        NotFoundError: None has; says what there is.
        UsageError: Several begin so.
    """
    from memctl.operations.finding import first_with

    try:
        return first_with(
            bases,
            lambda base: base.sessions.get(id_, namespace=namespace, user=user),
            f"there is no session {id_!r}",
        )
    except NotFoundError:
        namespaces = (namespace,) if namespace else ()
        found = [
            (base, each)
            for base in bases
            for each in base.sessions.list(user=user, namespaces=namespaces)
            if each.session_id.startswith(id_)
        ]
        if not found:
            raise
        if len(found) > 1:
            such = ", ".join(each.session_id for _, each in found[:_MAX_NAMED])
            raise UsageError(f"several sessions begin with {id_!r}", f"such as {such}") from None
        return found[0]
