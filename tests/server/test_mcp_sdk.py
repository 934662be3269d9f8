"""The official client of the Model Context Protocol, in both generations, against the server."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

import memctl
from memctl.sessions.conversations import Message

CALLS: Mapping[str, Mapping[str, Any]] = {
    "recall": {"question": "When does the lease start?"},
    "context": {"question": "When does the lease start?"},
    "remember": {"text": "The kettle is red.", "dry_run": True},
    "open": {"id": "Harbour lease"},
    "browse": {},
    "related": {"name": "Eva Brandt"},
    "session": {},
    "feedback": {"query_id": "last", "verdict": "good", "dry_run": True},
    "list_memory_pools": {},
    "write_shared_memory": {"pool_id": "default", "key": "a", "value": 1},
    "read_shared_memory": {"pool_id": "default"},
    "memory_pool_stats": {"pool_id": "default"},
    "search_documents": {"query": "lease"},
    "add_document": {"content": "The mast is of ash.", "dry_run": True},
    "next_work": {},
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdk")
    page = folder / "lease.md"
    page.write_text("# Harbour lease\n\nThe lease of Eva Brandt starts on 1 June 2026.")
    with memctl.open("default", home=folder / "home", create=True) as base:
        base.ingest(page)
        base.sessions.say(base.sessions.start("one"), Message(sender="user", content="Hello."))
    return folder / "home"


async def use(home: Path, mode: str) -> dict[str, Any]:
    """Do what a client does; return what it was given."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "memctl", "mcp", "--tools", "core,pools,documents,work"],
        env={**os.environ, "MEMCTL_HOME": str(home)},
    )
    found: dict[str, Any] = {}
    async with Client(stdio_client(server), mode=mode) as client:  # type: ignore[arg-type]
        tools = (await client.list_tools()).tools
        found["tools"] = {tool.name for tool in tools}
        for name, arguments in CALLS.items():
            result = await client.call_tool(name, dict(arguments))
            assert not result.is_error, (name, result.content)
            found[name] = result.structured_content
        (uri,) = (
            resource.uri
            for resource in (await client.list_resources()).resources
            if resource.name == "Harbour lease"
        )
        contents = (await client.read_resource(uri)).contents
        found["resource"] = contents[0].text  # type: ignore[union-attr]
        prompts = (await client.list_prompts()).prompts
        found["prompts"] = {prompt.name for prompt in prompts}
    return found


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_official_client_lists_and_calls_tools_and_reads_resources(
    home: Path, mode: str
) -> None:
    found = asyncio.run(use(home, mode))
    assert found["tools"] >= CALLS.keys()
    with memctl.open("default", home=home) as base:
        hits = base.query("When does the lease start?", log=False, answer=False).hits
    assert found["recall"]["citations"][0]["id"] == hits[0].memory_id
    assert "Eva Brandt starts on 1 June 2026" in found["resource"]
    assert found["read_shared_memory"]["value"] == {"a": 1}
    assert found["memory_pool_stats"]["entries"] == 1
    assert json.dumps(found["next_work"])
    assert found["prompts"] == {"recall", "standing_context", "session_prompt"}
