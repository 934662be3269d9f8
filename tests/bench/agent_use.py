"""What agents' use leaves in memory: how much of it is said twice, is small talk, or is an echo.

Plays a seeded span of days: sessions of several users with several agents.  An agent is prepared
with `sessions.prompt`, as a client would, and its reply repeats some of what memory gave it beside
something new.  Every few sessions the process's knowledge base is closed and opened again.

    python tests/bench/agent_use.py --days 30 --sessions 60 --turns 20

The rates, in percent of the memories that were made from what was said:

- duplicates: the same words in the same namespace once more;
- junk: made from small talk;
- echoes: made from what an agent repeated out of memory.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memctl.config import load_config
from memctl.doctor.doctor import Doctor
from memctl.home import Home
from memctl.knowledge_base import KnowledgeBase
from memctl.sessions.conversations import Message
from memctl.store.ledger.session_repositories import Session

START = datetime(2026, 3, 2, 8, tzinfo=UTC)
USERS = ("ann", "bob")
AGENTS = ("coder", "planner", "clerk")
PEOPLE = ("Maya Lindqvist", "Tom Ferreira", "Priya Nair", "Jonas Weber", "Elif Kaya", "Sam Okafor")
THINGS = (
    "boiler", "invoice export", "login page", "garden fence", "tax return", "newsletter",
    "backup job", "kitchen tap", "search index", "rental contract", "van", "school play",
)  # fmt: skip
PLACES = ("Leeds", "Malmö", "Porto", "Graz", "Cork", "Utrecht")
FACTS = (
    "The {thing} was repaired by {person} and cost {amount} euros.",
    "{person} moved to {place} and works on the {thing} from there.",
    "We decided to postpone the {thing} until {date}.",
    "The deadline for the {thing} is {date}.",
    "important: the {thing} may only be changed by {person}",
    "My preference is that the {thing} gets done before noon on {date}.",
    "remember: {person} has the key for the {thing} in {place}",
    "The contract for the {thing} with {person} ends on {date}.",
    "We switched the {thing} to the supplier in {place} because it saves {amount} euros a year.",
)
SMALL_TALK = (
    "Good morning!", "Thanks, that helps a lot.", "Hm, let me think about it for a second.",
    "How are you today?", "Sounds good to me.", "Okay, one moment please.", "Haha, fair enough.",
    "Sorry, I was away for a minute.", "Great, let's go on then.", "You are welcome!",
    "Could you say that again?", "Nice, see you later.", "No worries at all.",
)  # fmt: skip
QUESTIONS = (
    "What did we discuss about the {thing}?",
    "Earlier you said something about the {thing}, right?",
    "Remind me who takes care of the {thing}.",
    "What do we know about {person}?",
)
REPLIES = (
    "I have written that down.", "Understood, I will keep it in mind.", "Done.", "Sure.",
    "Let me know if there is anything else.", "Happy to help with that.",
)  # fmt: skip
_WORD = re.compile(r"\w+")


@dataclass
class Said:
    """What was said, by what it is."""

    talk: set[str] = field(default_factory=set)
    repeated: Counter[str] = field(default_factory=Counter)
    stated: set[str] = field(default_factory=set)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--sessions", type=int, default=60)
    parser.add_argument("--turns", type=int, default=20, help="of the user, in each session")
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        play(Path(folder), wanted.days, wanted.sessions, wanted.turns, wanted.seed)


def play(folder: Path, days: int, sessions: int, turns: int, seed: int) -> None:
    chance, said = random.Random(seed), Said()
    clock = Clock(START)
    home = Home(load_config({"home": str(folder)}, {}), clock)
    home.create("life")
    started, appended = time.perf_counter(), []
    kb = home.open_for_writing("life")
    for number in range(sessions):
        clock.now = START + timedelta(days=days * number / sessions)
        user, agent = chance.choice(USERS), chance.choice(AGENTS)
        session = kb.sessions.start(user=user, agent=agent)
        for _ in range(turns):
            appended += exchange(kb, session, clock, chance, said)
        kb.sessions.end(session)
        if number % 5 == 4:
            kb.close()
            kb = home.open_for_writing("life")
    kb.consolidate()
    report(kb, said)
    appended.sort()
    print(f"turns                    {len(appended):8,}")
    print(f"append, median           {1000 * appended[len(appended) // 2]:8.1f} ms")
    print(f"append, 95 of 100        {1000 * appended[int(len(appended) * 0.95)]:8.1f} ms")
    print(f"all of it                {time.perf_counter() - started:8.1f} s")
    kb.close()
    found = [each for each in Doctor(home).examine("life", deep=True) if each.verdict != "ok"]
    print(f"findings of doctor       {len(found):8,}")
    for each in found:
        print(f"  {each}")


class Clock:
    """Tells the time of the play."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


def exchange(
    kb: KnowledgeBase, session: Session, clock: Clock, chance: random.Random, said: Said
) -> list[float]:
    """Play a message and its reply; return the seconds that each took to append."""
    kind = chance.random()
    reply = [chance.choice(REPLIES)]
    said.talk.add(plain(reply[0]))
    if kind < 0.35:
        text = filled(chance.choice(FACTS), chance)
        said.stated.add(plain(text))
    elif kind < 0.75:
        text = chance.choice(SMALL_TALK)
        said.talk.add(plain(text))
    else:
        text = filled(chance.choice(QUESTIONS), chance)
        prepared = kb.sessions.prompt(session, text)
        known = [
            line.strip("-* ")
            for message in prepared[:-1]
            if message["role"] == "system"
            for line in message["content"].splitlines()
            if len(line) > 40 and not line.startswith("#")
        ]
        repeated = known[:2]
        said.repeated.update(map(plain, repeated))
        reply = [*repeated, *reply]
    times = []
    for sender, words in (("user", text), ("agent", "\n".join(reply))):
        clock.now += timedelta(seconds=chance.randint(5, 90))
        began = time.perf_counter()
        kb.sessions.say(session, Message(sender=sender, content=words))
        times.append(time.perf_counter() - began)
    return times


def filled(template: str, chance: random.Random) -> str:
    day = START + timedelta(days=chance.randint(10, 300))
    return template.format(
        thing=chance.choice(THINGS),
        person=chance.choice(PEOPLE),
        place=chance.choice(PLACES),
        amount=chance.randint(20, 4000),
        date=f"{day.day} {day:%B %Y}",
    )


def plain(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


def report(kb: KnowledgeBase, said: Said) -> None:
    """Print the rates."""
    rows = (
        kb.sql(
            "SELECT namespace, level, type, text FROM memories"
            " WHERE valid_to IS NULL AND level = 'memory'"
            " AND type NOT IN ('gist', 'conversation_turn')"
        )
        .read_all()
        .to_pylist()
    )
    texts = Counter((row["namespace"], plain(row["text"])) for row in rows)
    total = max(1, len(rows))
    again = sum(count - 1 for count in texts.values())
    junk = sum(any(talk == text for talk in said.talk) for _, text in texts.elements())
    stated = " | ".join(said.stated)
    echoes = sum(
        text not in stated and any(text in repeated for repeated in said.repeated)
        for _, text in texts.elements()
    )
    print(f"stated                   {len(said.stated):8,}")
    print(f"memories made            {len(rows):8,}")
    for name, number in (("duplicates", again), ("junk", junk), ("echoes", echoes)):
        print(f"{name:24} {100 * number / total:8.2f} %")


if __name__ == "__main__":
    main()
