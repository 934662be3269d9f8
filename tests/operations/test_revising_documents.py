"""Documents whose text is changed: by whom, in which file, and what happens to a late change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memctl.config import load_config
from memctl.errors import UsageError, VersionConflict
from memctl.home import Home
from memctl.knowledge_base import KnowledgeBase
from memctl.operations.operation_context import OperationContext
from memctl.operations.tool_calls import run_tool

NOTE = "---\ntitle: Harbour\n---\n\nThe harbour office opens at nine.\n"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with an empty knowledge base."""
    made = Home(load_config({"home": str(tmp_path_factory.mktemp("revise") / "home")}, {}))
    made.create("default")
    return made


@pytest.fixture
def kb(home: Home) -> Iterator[KnowledgeBase]:
    """Its knowledge base, empty."""
    with home.open("default") as base:
        for row in base.documents.list().to_pylist():
            base.documents.delete(row["id"])
        yield base


def add(kb: KnowledgeBase, *args: Any, **named: Any) -> str:
    """Take a document in, and return its id."""
    id_ = kb.documents.ingest(*args, **named).outcomes[0].document_id
    assert id_ is not None
    return id_


def texts(kb: KnowledgeBase) -> list[str]:
    """The texts of all documents that hold now."""
    ids = [row["id"] for row in kb.documents.list().to_pylist()]
    return sorted(kb.documents.get(id_).document.text for id_ in ids)


def test_a_text_gets_a_new_version_and_a_late_change_of_the_old_one_is_refused(
    kb: KnowledgeBase,
) -> None:
    first = add(kb, text="The key is blue.", title="Key", tags=["home"], metadata={"room": 3})
    tried = kb.documents.revise(first, "The key is red.", dry_run=True)
    assert (tried.document_id, texts(kb)) == (None, ["The key is blue."])
    made = kb.documents.revise(first, "The key is red.")
    assert (made.supersedes, made.file) == (first, "")
    assert made.document_id is not None
    now = kb.documents.get(made.document_id).document
    assert (now.title, now.tags, now.metadata["room"]) == ("Key", ("home",), 3)
    assert kb.documents.get(first).document.superseded_by == now.id
    assert texts(kb) == ["The key is red."]
    with pytest.raises(VersionConflict, match=now.id):
        kb.documents.revise(first, "The key is green.")
    kb.documents.revise(now.id, "The key is blue.")
    assert texts(kb) == ["The key is blue."], "and back again"
    for same in ("The key is blue.", " \n"):
        with pytest.raises(UsageError):
            kb.documents.revise(kb.documents.list()["id"][0].as_py(), same)


def test_a_document_with_an_id_of_its_own_keeps_it(kb: KnowledgeBase, tmp_path: Path) -> None:
    lines = tmp_path / "lines.jsonl"
    lines.write_text('{"id": "door", "text": "The door is open."}\n')
    id_ = add(kb, jsonl=lines)
    made = kb.documents.revise(id_, "The door is shut.")
    assert made.document_id is not None
    assert kb.documents.get(made.document_id).document.external_id == "door"
    assert texts(kb) == ["The door is shut."]


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_the_file_of_a_note_is_changed_with_it(
    kb: KnowledgeBase, tmp_path: Path, ends: str
) -> None:
    file = tmp_path / "harbour.md"
    file.write_bytes(NOTE.replace("\n", ends).encode())
    id_ = add(kb, file)
    new = NOTE.replace("nine", "eight").replace("Harbour", "Port")
    made = kb.documents.revise(id_, new)
    assert made.file == str(file)
    assert file.read_bytes() == new.replace("\n", ends).encode()
    assert made.document_id is not None
    assert kb.documents.get(made.document_id).document.title == "Port"
    assert texts(kb) == [new]
    assert kb.ingest([file]).skipped == 1

    file.write_text("Written elsewhere.")
    with pytest.raises(VersionConflict, match=r"harbour\.md says something else"):
        kb.documents.revise(made.document_id, "Mine.")
    assert file.read_text() == "Written elsewhere."
    file.unlink()
    kb.documents.revise(made.document_id, NOTE)
    assert texts(kb) == [NOTE]
    assert not file.exists()


def test_what_is_no_text_stays_as_it_is(kb: KnowledgeBase, tmp_path: Path) -> None:
    file = tmp_path / "rent.csv"
    file.write_text("month,rent\nMay,900\n")
    with pytest.raises(UsageError, match="no text but"):
        kb.documents.revise(add(kb, file), "month,rent\nMay,1\n")
    assert file.read_text() == "month,rent\nMay,900\n"


def test_a_mention_becomes_a_link_after_a_trial_and_can_be_taken_back(
    home: Home, kb: KnowledgeBase
) -> None:
    target = add(kb, text="Opens at nine.", title="Harbour Office")
    text = "Ask the harbour office, or the Harbour Office again."
    source = add(kb, text=text, title="News")
    with OperationContext.of(home) as context:

        def call(name: str, **arguments: Any) -> Any:
            return run_tool(name, arguments, context).value

        (mention,) = call("unlinked_mentions", document_id=target)["unlinked_mentions"]
        place = mention["places"][0]
        asked = {
            "document_id": target,
            "named_in": source,
            "start": place["start"],
            "end": place["end"],
        }
        tried = call("link_mention", **asked, dry_run=True)
        assert tried["link"] == "[[Harbour Office|harbour office]]"
        assert (tried["before"], tried["after"]) == (
            text,
            text.replace("harbour office", "[[Harbour Office|harbour office]]", 1),
        )
        assert texts(kb)[0] == text
        made = call("link_mention", **asked)["document"]["document_id"]
        assert call("unlinked_mentions", document_id=target)["unlinked_mentions"] == []
        (back,) = call("backlinks", document_id=target)["backlinks"]
        assert back["id"] == made
        assert "error" in call("link_mention", **asked)
        assert "error" in call("link_mention", **{**asked, "named_in": made, "start": 1, "end": 3})
        call("revise_document", document_id=made, text=text)
        assert call("backlinks", document_id=target)["backlinks"] == []


def test_a_user_changes_no_document_of_another(home: Home, kb: KnowledgeBase) -> None:
    add(kb, text="Ann keeps bees.", namespace="user:ann:documents")
    id_ = kb.documents.list()["id"][0].as_py()
    with OperationContext.of(home, user="bo") as context:
        refused = run_tool("revise_document", {"document_id": id_, "text": "Bo's."}, context)
    assert refused.is_error
    assert texts(kb) == ["Ann keeps bees."]
