"""A small home for the web page: documents that mislead, a conversation, insights."""

from __future__ import annotations

from memctl.home import Home
from memctl.sessions.conversations import Message

TITLE = "<script>alert('title')</script>\x1b[31m\u202egpj.exe"
TEXT = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> We decided to paint the door green."
    "\nThe code of the \x07door is 4711."
)
PAGES = (
    "/", "/timeline", "/timeline?by=known", "/memories", "/memories?level=all", "/memories/new",
    "/documents", "/insights", "/sessions", "/graph", "/graph?overview=1", "/inbox",
    "/upkeep", "/settings",
)  # fmt: skip


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
        talk = base.sessions.start("talk", title=TITLE)
        base.sessions.say(
            talk, Message(sender="ann", content="Remember that <b>tea</b> is better than coffee.")
        )
        base.consolidate()
        base.query("what is the rent of the workshop?")
