"""SQL over the tables: what it can read, and that it can do nothing else."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from memctl.errors import MemctlError, UsageError
from memctl.records import Filters, Relation
from memctl.schema.arrow_tables import documents_table, memories_table, relations_table
from memctl.store import sql as sql_module
from memctl.store.ledger.audit_repositories import AccessEntry
from memctl.store.ledger.log_repositories import QueryEntry
from memctl.store.ledger.work_repositories import Event
from memctl.store.sql import NamespaceScope, capped_process_memory, run_sql
from memctl.store.store import Store

NUMBERS = range(40)


@pytest.fixture
def filled(store: Store, memory_of: Callable[..., Any], document_of: Callable[..., Any]) -> Store:
    memories = [
        memory_of(
            number,
            turn=number if number % 2 else None,
            is_consolidated=number % 4 == 0,
            tags=("even",) if number % 2 == 0 else ("odd", "prime"),
            metadata={"weight": number},
            importance=number / 40,
        )
        for number in NUMBERS
    ]
    relation = Relation(
        "r_1", "m_1", "m_2", "similar", "", 0.5, 0.5, ("m_1",), memories[0].created_at
    )
    with store.write() as transaction:
        transaction.append("documents", documents_table([document_of("1")]))
        transaction.append(
            "memories", memories_table(memories, np.eye(8)[[n % 8 for n in NUMBERS]])
        )
        transaction.append("relations", relations_table([relation]))
    return store


@pytest.fixture
def ask(filled: Store) -> Callable[..., list[dict[str, Any]]]:
    def run(statement: str, **options: Any) -> list[dict[str, Any]]:
        rows = run_sql({"notes": filled.snapshot()}, statement, **options).read_all().to_pylist()
        return list(rows)

    return run


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What is asked of the tables' files while a test runs."""
    asked: list[dict[str, Any]] = []
    scanner = sql_module._WidenedDataset.scanner

    def remembered(self: Any, *args: Any, **options: Any) -> Any:
        asked.append(options)
        return scanner(self, *args, **options)

    monkeypatch.setattr(sql_module._WidenedDataset, "scanner", remembered)
    return asked


def test_every_table_can_be_asked(ask: Callable[..., Any]) -> None:
    for table, count in {"documents": 1, "memories": 40, "entities": 0, "relations": 1}.items():
        assert ask(f"select count(*) as n from {table}") == [{"n": count}]


def test_lists_json_instants_and_vectors_are_usable(ask: Callable[..., Any]) -> None:
    rows = ask(
        """select sum((metadata->>'weight')::int)::int as weight, min(created_at) as first,
             max(array_cosine_similarity(vector, vector)) as likeness
           from memories where list_contains(tags, 'prime') and created_at > '2025-01-01'"""
    )
    assert rows[0]["weight"] == sum(range(1, 40, 2))
    assert rows[0]["first"].isoformat() == "2025-06-01T12:00:00+00:00"
    assert rows[0]["likeness"] == pytest.approx(1.0)


def test_who_read_and_who_changed_what_are_tables_within_what_may_be_read(filled: Store) -> None:
    snapshot, ledger = filled.snapshot(), filled.ledger
    rows = snapshot.scan("memories", columns=["id", "namespace", "created_at"]).to_pylist()
    now, other = rows[0]["created_at"], {**rows[0], "id": "m_gone"}
    read = [
        AccessEntry(now, row["id"], "", "show", user, "scout")
        for row in (*rows, other)
        for user in ("", "ann", "bob")
    ]
    ledger.access_trail.add(read, len(read))
    ledger.audit.add(now, "memory add", [rows[0]["id"]], {"memories": 1})

    def asked(statement: str, **within: Any) -> list[dict[str, Any]]:
        found = run_sql({"notes": snapshot}, statement, ledgers={"notes": ledger}, **within)
        return found.read_all().to_pylist()

    every = "select count(*) n, count(user_id) named from accesses"
    assert asked(every) == [{"n": len(read), "named": len(read) * 2 // 3}]
    audit = "select actor, counts->>'memories' n from audit where action = 'memory add'"
    assert asked(audit) == [{"actor": "owner", "n": "1"}]
    named = NamespaceScope(Filters(namespaces=(rows[0]["namespace"],)), "ann")
    meant = sum(row["namespace"] == rows[0]["namespace"] for row in rows)
    assert asked(every, scope=named) == [{"n": meant * 2, "named": meant}]
    assert not asked(audit, scope=named)
    ledger.audit.actor = "user ann"
    ledger.audit.add(now, "memory add", [rows[0]["id"]], {"memories": 2})
    assert asked(audit, scope=named) == [{"actor": "user ann", "n": "2"}]
    assert not asked(audit, pools={"notes": ["operations"]})


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("turn > 5 and turn < 10", 2),
        ("turn is null", 20),
        ("turn is not null and not is_consolidated", 20),
        ("id in ('m_1', 'm_2') or text = 'text 3'", 3),
        ("id <> 'm_1'", 39),
        ("importance >= 0.5", 20),
        ("created_at between '2025-01-01' and '2025-12-31'", 40),
        ("text like '% 1_'", 10),
        ("document_id = 'd_1' and (turn = 1 or turn = 3)", 2),
        ("turn not in (1, 3)", 18),
        ("turn is distinct from 1", 39),
    ],
)
def test_a_condition_finds_the_rows_that_it_should(
    ask: Callable[..., Any], condition: str, expected: int
) -> None:
    assert ask(f"select count(*) as n from memories where {condition}") == [{"n": expected}]


def test_only_the_columns_and_rows_asked_for_are_read(
    ask: Callable[..., Any], scans: list[dict[str, Any]]
) -> None:
    assert ask("select text from memories where id = 'm_7'") == [{"text": "text 7"}]
    assert [(scan["columns"], str(scan["filter"])) for scan in scans] == [
        (["text"], '(id == "m_7")')
    ]


def test_several_knowledge_bases_are_one_table_with_their_names(
    filled: Store, scans: list[dict[str, Any]], tmp_path: Path
) -> None:
    with Store.create(tmp_path / "other", 4) as other:
        snapshots = {"it's": filled.snapshot(), "other": other.snapshot()}
        counts = run_sql(snapshots, "select kb, count(*) as n from memories group by kb")
        assert counts.read_all().to_pylist() == [{"kb": "it's", "n": 40}]
        scans.clear()
        run_sql(snapshots, "select id, vector from memories where kb = 'it''s'").read_all()
        assert len(scans) == 1, "a knowledge base that cannot match is not read"


def test_the_ledgers_books_are_tables(filled: Store) -> None:
    now = filled.snapshot().scan("memories", limit=1)["created_at"][0].as_py()
    filled.ledger.events.add(Event(now, "ingest", "cannot read x", "", "x.pdf"))
    filled.ledger.queries.add(QueryEntry(now, "who?", "hybrid", 3, 0.1))
    snapshots, ledgers = {"notes": filled.snapshot()}, {"notes": filled.ledger}
    for statement, expected in {
        "select message, occurred_at from events": {
            "message": "cannot read x",
            "occurred_at": now,
        },
        "select question, hits from queries": {"question": "who?", "hits": 3},
        "select count(*) as n from files": {"n": 0},
    }.items():
        assert run_sql(snapshots, statement, ledgers=ledgers).read_all().to_pylist() == [expected]


@pytest.mark.parametrize(
    "statement",
    ["explain select 1", "describe memories", "show tables", "from memories limit 1", "values (1)",
     "with a as (select 1 as x) select x from a", "summarize memories"],
)  # fmt: skip
def test_statements_that_only_read_are_taken(ask: Callable[..., Any], statement: str) -> None:
    assert ask(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "create table x (a int)",
        "insert into memories select * from memories",
        "delete from memories",
        "drop view memories",
        "copy memories to '{folder}/out.csv'",
        "copy (select 1) to '{folder}/out.parquet' (format parquet)",
        "export database '{folder}/out'",
        "attach '{folder}/out.db'",
        "install httpfs",
        "load httpfs",
        "set memory_limit = '100GB'",
        "reset memory_limit",
        "pragma enable_profiling",
        "call pragma_version()",
        "begin",
        "checkpoint",
        "select 1; select 2",
        "select 1; copy (select 1) to '{folder}/out.csv'",
        "",
        "  -- nothing",
        "explain analyze create table x as select 1",
        "explain analyze copy (select 1) to '{folder}/out.csv'",
        "select * from '{folder}/secret.csv'",
        "select * from read_csv('{folder}/secret.csv')",
        "select * from read_text('{folder}/secret.csv')",
        "select * from read_blob('{folder}/*')",
        "select * from glob('{folder}/*')",
        "select * from sniff_csv('{folder}/secret.csv')",
        "select * from parquet_scan('https://example.org/x.parquet')",
        "select * from sqlite_scan('{folder}/ledger.sqlite', 'files')",
        "select * from query('copy (select 1) to ''{folder}/out.csv''')",
        "select getenv('HOME')",
        "select * from outside",
        "select * from duckdb_secrets()",
    ],
)
def test_anything_else_is_refused_and_leaves_nothing_behind(
    ask: Callable[..., Any], tmp_path: Path, statement: str
) -> None:
    outside = pa.table({"a": [1]})  # a query must not see variables of the program
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "secret.csv").write_text("a\n1\n")
    with pytest.raises(UsageError) as refused:
        ask(statement.format(folder=folder))
    assert "\n" not in refused.value.message
    assert refused.value.hint
    assert [path.name for path in folder.rglob("*")] == ["secret.csv"]
    assert outside.num_rows == 1


def test_a_mistake_is_one_line_with_a_hint(ask: Callable[..., Any]) -> None:
    with pytest.raises(
        UsageError, match=r'^Binder Error: Referenced column "txt" not found'
    ) as bad:
        ask("select txt\nfrom memories")
    assert "DESCRIBE memories" in bad.value.hint
    with pytest.raises(UsageError, match="Table with name memoris does not exist") as unknown:
        ask("select * from memoris")
    assert "documents, memories, entities, relations" in unknown.value.hint


@pytest.mark.parametrize(
    ("table", "suggestion"),
    [("memory", ' Did you mean "memories"?'), ("tags", ""), ("pg_enu", ""), ("columns", "")],
)
def test_of_tables_only_its_own_are_suggested(
    ask: Callable[..., Any], table: str, suggestion: str
) -> None:
    with pytest.raises(UsageError) as bad:
        ask(f"select * from {table}")
    assert bad.value.message == (
        f"Catalog Error: Table with name {table} does not exist!{suggestion}"
    )


def test_a_query_that_takes_too_long_is_stopped(ask: Callable[..., Any]) -> None:
    endless = "select count(*) from range(100000000) a, range(100000000) b where a.range > b.range"
    with pytest.raises(MemctlError, match=r"stopped after 0\.3 seconds"):
        ask(endless, timeout=0.3)


def test_a_query_that_yields_rows_for_too_long_is_stopped(ask: Callable[..., Any]) -> None:
    endless = "select a.range + b.range from range(10000000) a, range(10000000) b"
    with pytest.raises(MemctlError, match=r"stopped after 0\.3 seconds"):
        ask(endless, timeout=0.3)


def test_a_query_that_takes_too_much_memory_is_stopped(ask: Callable[..., Any]) -> None:
    greedy = "select list(range::varchar || repeat('x', 1000)) from range(10000000)"
    with pytest.raises(MemctlError, match="more memory than it may have"):
        ask(greedy, memory_limit="50MB")


def test_a_memory_limit_that_cannot_be_read_is_named(ask: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match="'plenty'"):
        ask("select 1", memory_limit="plenty")


def test_one_huge_value_does_not_get_past_the_cap_of_the_process(
    run_python: Callable[[str], subprocess.CompletedProcess[str]],
) -> None:
    done = run_python(
        "import sys\n"
        "from pathlib import Path\n"
        "from memctl.errors import MemctlError\n"
        "from memctl.store.sql import NamespaceScope, capped_process_memory, run_sql\n"
        "from memctl.store.store import Store\n"
        "with Store.open(Path(sys.argv[1])) as store:\n"
        "    with capped_process_memory(1 << 30):\n"
        "        try:\n"
        "            huge = \"select length(repeat('a', 3000000000))\"\n"
        "            run_sql({'x': store.snapshot()}, huge).read_all()\n"
        "        except MemctlError as error:\n"
        "            print(error)\n"
    )
    if not Path("/proc/self/statm").exists():
        pytest.skip("the cap is for Linux")
    assert re.match("the query needs more memory", done.stdout), done
    assert done.stderr == ""


def test_the_cap_of_the_process_ends_with_the_query() -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with capped_process_memory(1 << 30):
        assert resource.getrlimit(resource.RLIMIT_DATA)[0] < 100 << 30
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
