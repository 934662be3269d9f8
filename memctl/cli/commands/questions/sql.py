"""memctl sql: DuckDB over every table."""

from __future__ import annotations

import sys

import typer

from memctl.cli.arguments import refuse_empty
from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import KnowledgeBasesOption, NamespacesOption, Output, command
from memctl.cli.rendering.output_formats import Column, emit
from memctl.cli.rendering.terminal_text import one_line
from memctl.errors import UsageError

_CELL = 60


app = typer.Typer()


@command(
    app,
    "sql",
    """
    memctl sql "select type, count(*) from memories group by all"
    memctl sql "from documents select title, importance order by 2 desc limit 5"
    memctl sql "select m.text from memories m join documents d on d.id = m.document_id
                where d.metadata->>'agent_id' = 'a1'"
    echo "describe memories" | memctl sql - -o csv
    """,
    identity=True,
)
def sql(
    context: CommandContext,
    statement: str = typer.Argument(
        ..., metavar="STATEMENT", help="One SELECT or EXPLAIN; - is stdin."
    ),
    kb: KnowledgeBasesOption = None,
    namespace: NamespacesOption = None,
    output: Output = None,
) -> None:
    """Run SQL over documents, memories, entities and relations.

    The ledger can be queried too: files, jobs, events, queries, accesses,
    audit and model_usage.

    What a source says of a document, such as its front matter, is in the metadata of documents;
    memories have it by their document_id.

    It is DuckDB, read-only, without access to files or the network.
    """
    refuse_empty({"--namespace": namespace})
    text = sys.stdin.read() if statement == "-" else statement
    if not text.strip():
        raise UsageError("the statement is empty", 'try: memctl sql "from memories limit 5"')
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise UsageError("the statement is not UTF-8", "write it in UTF-8")
    with context.reading(kb) as bases, bases.queries.capped_memory():
        reader = bases.sql(text, namespace or ())
        columns = [
            Column(name, name, lambda value: one_line(str(value), _CELL))
            for name in reader.schema.names
        ]
        emit(reader, columns, output)
