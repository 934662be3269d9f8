"""A small home for the web page: documents that mislead, a conversation, insights."""

from __future__ import annotations

import tempfile
from pathlib import Path

from memctl.home import Home
from memctl.knowledge_base import KnowledgeBase
from memctl.sessions.conversations import Message

TITLE = "<script>alert('title')</script>\x1b[31m\u202egpj.exe"
TEXT = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> We decided to paint the door green."
    "\nThe code of the \x07door is 4711."
)
SKILL = """---
name: Painting doors
description: Sand, prime and paint a door <b>evenly</b> so that it lasts for years.
---

Sand first. <script>alert(3)</script>
"""
PAGES = (
    "/", "/timeline", "/timeline?by=known", "/memories", "/memories?level=all", "/memories/new",
    "/documents", "/insights", "/sessions", "/graph", "/graph?overview=1",
    "/pools", "/skills", "/skills?status=draft", "/skills?q=paint", "/inbox",
    "/upkeep", "/settings",
)  # fmt: skip
THINGS = ("/pools/ops", "/skills/painting-doors", "/sessions/talk")
"""Pages of something that is put in."""


def fill(home: Home) -> None:
    """Put it in."""
    home.create("default")
    home.create("diary", private=True)
    with home.open("diary") as diary:
        diary.ingest(text="The key is under the flower pot.")
    with home.open("default") as base:
        base.ingest(text=TEXT, title=TITLE)
        for title, rent, said in (("Lease", "1,450", "24 March"), ("Letter", "1,520", "12 May")):
            base.ingest(
                text=f"The rent for the Harbour Street workshop is {rent} euros a month. Ann Lee"
                f" met Rui Santos at Quayside Estates on {said} 2026.",
                title=title,
            )
        base.ingest(text="They let workshops and sheds.", title="Quayside Estates")
        talk = base.sessions.start("talk", title=TITLE)
        base.sessions.say(
            talk, Message(sender="ann", content="Remember that <b>tea</b> is better than coffee.")
        )
        base.consolidate()
        share(base)
        base.query("what is the rent of the workshop?")


def share(base: KnowledgeBase) -> None:
    """Put in a pool, two skills, one of which is a draft, and a proposal of a third."""
    pools = base.pools.acting_as()
    pools.create("ops", name="<script>alert('pool')</script>")
    pools.write("ops", "mood", "<b>calm</b> \u202e")
    pools.write("ops", "agent_bulletin.market", {"regime": "risk_off"})
    pools.grant("ops", "helper", "write")
    with tempfile.TemporaryDirectory() as folder:
        for agent, name in ((None, "Painting doors"), ("helper", "Painting walls")):
            file = Path(folder) / name / "SKILL.md"
            file.parent.mkdir()
            file.write_text(SKILL.replace("Painting doors", name), "utf-8")
            base.skills.acting_as(agent).add(file.parent)
    base.skills.proposals("helper").propose("Oiling hinges", submitted=True)
