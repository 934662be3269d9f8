"""The operation ``memory``: files that a model keeps, as documents with versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memctl.config import load_config
from memctl.errors import UsageError
from memctl.home import Home
from memctl.operations.operation_context import OperationContext
from memctl.operations.tool_calls import run_tool

Call = Callable[..., Any]
NOTES = "# Notes\n\nThe gate closes at nine.\nIda has the key.\n"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with one knowledge base."""
    made = Home(load_config({"home": str(tmp_path_factory.mktemp("files"))}, {}))
    made.create("default")
    return made


@pytest.fixture(scope="module")
def context(home: Home) -> Iterator[OperationContext]:
    """A caller without a user."""
    with OperationContext.of(home) as made:
        yield made


@pytest.fixture
def call(context: OperationContext) -> Call:
    """Calls the tool, and returns the text that a model is told, or the error."""

    def call_tool(command: str, **arguments: Any) -> str:
        given = {"command": command, **arguments}
        try:
            return run_tool("memory", given, context).text
        except Exception as error:  # noqa: BLE001 - what it says is what is tested
            return f"Error: {error}"

    return call_tool


def test_a_file_is_created_viewed_edited_renamed_and_deleted(
    call: Call, context: OperationContext
) -> None:
    path = "/memories/house/notes.md"
    assert call("create", path=path, file_text=NOTES) == f"File created successfully at: {path}"
    assert "already exists" in call("create", path=path, file_text="other")
    shown = call("view", path=path)
    assert shown.startswith(f"Here's the content of {path} with line numbers:\n     1\t# Notes")
    assert "     3\tThe gate closes at nine." in shown
    two = call("view", path=path, view_range=[3, 4])
    assert "     3\tThe gate" in two
    assert "# Notes" not in two
    assert "Invalid `view_range`" in call("view", path=path, view_range=[4, 2])

    edited = call("str_replace", path=path, old_str="nine", new_str="ten")
    assert "The gate closes at ten." in edited
    assert "did not appear verbatim" in call("str_replace", path=path, old_str="nine", new_str="x")
    twice = call("str_replace", path=path, old_str="t", new_str="x")
    assert "Multiple occurrences" in twice
    call("insert", path=path, insert_line=2, insert_text="The lift works.\n")
    assert "     3\tThe lift works.\n     4\tThe gate closes at ten." in call("view", path=path)
    assert "Invalid `insert_line`" in call("insert", path=path, insert_line=99, insert_text="x")

    listed = call("view", path="/memories")
    assert listed.startswith("Here're the files and directories up to 2 levels deep in /memories")
    assert f"\t{path}" in listed
    assert "\t/memories/house" in listed

    found = run_tool("answer", {"question": "When does the gate close?"}, context).value
    assert "ten" in found["answer"]

    new = "/memories/plans/gate.md"
    assert call("rename", old_path=path, new_path=new) == f"Successfully renamed {path} to {new}"
    assert "does not exist" in call("view", path=path)
    assert "The gate closes at ten." in call("view", path=new)
    assert "does not exist" in call("rename", old_path=path, new_path="/memories/x.md")
    assert call("delete", path="/memories/plans") == "Successfully deleted /memories/plans"
    assert "does not exist" in call("delete", path=new)


def test_the_text_of_a_file_is_kept_to_the_last_character(
    call: Call, context: OperationContext
) -> None:
    text = "\n  one\t\u00e9\u2028\n\n\nthree \n\n"
    call("create", path="/memories/odd.txt", file_text=text)
    shown = call("view", path="/memories/odd.txt").split("\n", 1)[1]
    lines = [line.split("\t", 1)[1] for line in shown.split("\n")]
    assert "\n".join(lines) == text
    call("delete", path="/memories/odd.txt")


def test_an_edit_is_a_version_of_the_same_document(call: Call, context: OperationContext) -> None:
    path = "/memories/versions.md"
    call("create", path=path, file_text="The boat is blue.")
    call("str_replace", path=path, old_str="blue", new_str="red")
    base = context.reading_existing()
    rows = base.sql("select text, superseded_by from documents where external_id like '%versions%'")
    versions = sorted(rows.read_all().to_pylist(), key=lambda row: row["superseded_by"] is None)
    assert [row["text"] for row in versions] == ["The boat is blue.", "The boat is red."]
    assert versions[0]["superseded_by"]
    call("delete", path=path)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd", "memories/x", "/memories/../etc/passwd", "/memories/./x", "/memories//x",
        "/memories/..", "/memories/a/../../b", "/memories/%2e%2e/x", "/memories\\..\\x",
        "/memories/x\x00y", "/memories/x\ny", "/memoriesx", "/", "", "/memories/...",
        "/memories/" + "x" * 300, "/memories" + "/x" * 12,
    ],
)  # fmt: skip
def test_a_path_that_leads_elsewhere_is_refused(call: Call, path: str) -> None:
    for command in ("view", "create", "delete"):
        assert call(command, path=path, file_text="x").startswith("Error: ")
    assert call("rename", old_path="/memories/x", new_path=path).startswith("Error: ")


def test_files_and_folders_do_not_take_each_others_places(call: Call) -> None:
    call("create", path="/memories/a/b.md", file_text="b")
    assert "is a directory" in call("create", path="/memories/a", file_text="x")
    assert "is a file" in call("create", path="/memories/a/b.md/c", file_text="x")
    assert "already exists" in call("rename", old_path="/memories/a", new_path="/memories/a/b.md")
    assert "itself" in call("rename", old_path="/memories/a", new_path="/memories/a/c")
    assert "cannot be deleted" in call("delete", path="/memories")
    assert "would be empty" in call("create", path="/memories/empty.md", file_text=" ")
    call("rename", old_path="/memories/a", new_path="/memories/z")
    assert "\t/memories/z/b.md" in call("view", path="/memories/")
    call("delete", path="/memories/z")


def test_a_dry_run_writes_nothing(call: Call) -> None:
    path = "/memories/dry.md"
    tried = call("create", path=path, file_text="x", dry_run=True)
    assert tried == f"Nothing is written. It would say: File created successfully at: {path}"
    assert "does not exist" in call("view", path=path)
    call("create", path=path, file_text="The oven is hot.")
    call("delete", path=path, dry_run=True)
    call("rename", old_path=path, new_path="/memories/wet.md", dry_run=True)
    call("str_replace", path=path, old_str="hot", new_str="cold", dry_run=True)
    assert "The oven is hot." in call("view", path=path)
    call("delete", path=path)


def test_users_have_files_of_their_own(home: Home, tmp_path: Path) -> None:
    arguments = {"command": "create", "path": "/memories/mine.md", "file_text": "Ann's."}
    with OperationContext.of(home, user="ann") as ann, OperationContext.of(home, user="bo") as bo:
        run_tool("memory", arguments, ann)
        view = {"command": "view", "path": "/memories/mine.md"}
        assert "Ann's." in run_tool("memory", view, ann).text
        assert run_tool("memory", view, bo).is_error
    reader = OperationContext.of(home, user="ann", read_only=True)
    with reader:
        assert "Ann's." in run_tool("memory", view, reader).text
        with pytest.raises(UsageError, match="only be read"):
            run_tool("memory", arguments, reader)
