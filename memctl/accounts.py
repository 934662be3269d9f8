"""Who is known in a home: users, teams of agents, and agents with their files.

A user or an agent need not be known to be named: what is noted here is for people to look up.
Knows nothing of what they have stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from memctl.agent_settings import AgentSettings, is_json, load_agent, parse_agent, with_agent
from memctl.config import Config
from memctl.errors import ConfigError, LockedError, NotFoundError, UsageError
from memctl.files import make_folder, save_file
from memctl.identity import checked_name
from memctl.kb_settings import check_name, is_kb_name
from memctl.locking import hold_lock
from memctl.paths import display_path
from memctl.validation import check_keys, read_toml

_WAIT_SECONDS = 30.0
_ENDINGS = (".toml", ".json")


class User(Struct, frozen=True):
    """A user that has been added."""

    name: str
    created_at: datetime
    title: str = ""
    """Who that is, in words."""


class Team(Struct, frozen=True):
    """Agents that are granted something together."""

    name: str
    agents: tuple[str, ...]


class Accounts:
    """The users, teams and agents of one home.

    Args:
        config: The program's settings, which name the home.
    """

    def __init__(self, config: Config) -> None:
        self._config, self._home = config, config.home
        self._path = self._home / "accounts.toml"
        self._agents = self._home / "agents"

    # --- users -----------------------------------------------------------------------------------

    def users(self) -> tuple[User, ...]:
        """Return the users that were added, by name."""
        return tuple(_user(row, str(self._path)) for row in self._rows("users"))

    def user(self, name: str) -> User | None:
        """Return a user that was added; None if none has that name."""
        return next((user for user in self.users() if user.name == name), None)

    def add_user(self, name: str, title: str, now: datetime) -> User:
        """Add a user.

        Raises:
            UsageError: No user can have that name, or one has it.
        """
        user = User(_valid_name(name, "a user"), now, title)
        with self._lock_accounts():
            if self.user(user.name):
                raise UsageError(
                    f"there is a user {user.name!r} already", f"memctl user show {user.name}"
                )
            self._save(users=[*self.users(), user])
        return user

    def remove_user(self, name: str) -> None:
        """Remove the entry of a user; what they have stored stays.

        Raises:
            NotFoundError: No user of that name was added.
        """
        with self._lock_accounts():
            left = [user for user in self.users() if user.name != name]
            if len(left) == len(self.users()):
                raise NotFoundError(f"there is no user {name!r}", "memctl user list shows them")
            self._save(users=left)

    # --- teams -----------------------------------------------------------------------------------

    def teams(self) -> tuple[Team, ...]:
        """Return all teams, by name."""
        return tuple(_team(row, str(self._path)) for row in self._rows("teams"))

    def set_team(self, name: str, agents: Iterable[str]) -> Team:
        """Make a team, or add agents to it.

        Raises:
            UsageError: A name cannot be one.
        """
        name = _valid_name(name, "a team")
        added = [_valid_name(agent, "an agent") for agent in agents]
        with self._lock_accounts():
            known = {team.name: team for team in self.teams()}
            before = known[name].agents if name in known else ()
            team = Team(name, tuple(sorted({*before, *added})))
            self._save(teams=[*(known | {name: team}).values()])
        return team

    def remove_team(self, name: str, agents: Iterable[str] = ()) -> Team | None:
        """Take agents out of a team, or remove it; what it is granted stays granted to its name.

        Args:
            name: The team.
            agents: Who leaves it; by default all.

        Returns:
            The team with who is left; None where nobody is, and it is removed.

        Raises:
            NotFoundError: There is no such team, or one of them is not in it.
        """
        with self._lock_accounts():
            known = {team.name: team for team in self.teams()}
            if name not in known:
                raise NotFoundError(f"there is no team {name!r}", "memctl team list shows them")
            leaving = frozenset(agents)
            if strangers := sorted(leaving.difference(known[name].agents)):
                there = f"in it are {', '.join(known[name].agents)}"
                raise NotFoundError(f"{strangers[0]!r} is not in team {name!r}", there)
            left = tuple(each for each in known[name].agents if leaving and each not in leaving)
            team = Team(name, left) if left else None
            others = {each: known[each] for each in known if each != name}
            self._save(teams=[*others.values(), *([team] if team else [])])
        return team

    def teams_of(self, agent: str) -> frozenset[str]:
        """Return the names of the teams that an agent is in."""
        return frozenset(team.name for team in self.teams() if agent in team.agents)

    # --- agents ----------------------------------------------------------------------------------

    def agents(self) -> tuple[AgentSettings, ...]:
        """Return the settings of every agent that has a file, by name.

        Raises:
            ConfigError: One of them cannot be used.
        """
        if not self._agents.is_dir():
            return ()
        paths = sorted(p for p in self._agents.iterdir() if p.suffix in _ENDINGS)
        return tuple(map(load_agent, paths))

    def agent(self, name: str) -> AgentSettings:
        """Return the settings of an agent.

        Raises:
            NotFoundError: It has no file.
            ConfigError: Its file cannot be used.
        """
        path = self.agent_path(name)
        if path is None:
            there = ", ".join(each.agent_id for each in self.agents())
            hint = f"there are {there}; " if there else ""
            raise NotFoundError(
                f"there is no agent {name!r}", f"{hint}add one: memctl agent add {name}"
            )
        return load_agent(path)

    def with_agent(self, config: Config, agent: str | None) -> Config:
        """Return the settings of the program as they are where an agent is named.

        They are unchanged if no agent is named or the agent has no file.

        Raises:
            ConfigError: Its file cannot be used.
        """
        path = self.agent_path(agent) if agent and is_kb_name(agent) else None
        return config if path is None else with_agent(config, load_agent(path))

    def agent_path(self, name: str) -> Path | None:
        """Return where the file of an agent is; None where it has none."""
        paths = (self._agents / f"{check_name(name, 'an agent')}{end}" for end in _ENDINGS)
        return next((path for path in paths if path.is_file()), None)

    def add_agent(self, name: str, content: bytes | None = None, place: str = "") -> Path:
        """Write the file of a new agent, which has to be one that can be used.

        Args:
            name: What it is called.
            content: What its file says, as TOML or JSON; by default its name alone.
            place: Where that stands, for messages.

        Raises:
            UsageError: There is one of that name, or none can have it.
            ConfigError: The file cannot be used; nothing is written.
        """
        if self.agent_path(name) is not None:
            raise UsageError(f"there is an agent {name!r} already", f"memctl agent show {name}")
        if content is None:
            content = f'agent_id = "{name}"\n'.encode()
        found = parse_agent(content, place)
        if found.agent_id != name:
            raise ConfigError(
                f"its agent_id is {found.agent_id!r}, not {name!r}",
                f"add it as that: memctl agent add {found.agent_id}",
            )
        with_agent(self._config, found)
        make_folder(self._home, mode=0o700)
        make_folder(self._agents, mode=0o700)
        path = self._agents / f"{name}{'.json' if is_json(content) else '.toml'}"
        save_file(path, content)
        return path

    def remove_agent(self, name: str) -> None:
        """Delete the file of an agent; what it stored, its teams and its grants stay.

        Raises:
            NotFoundError: It has no file.
        """
        path = self.agent_path(name)
        if path is None:
            raise NotFoundError(f"there is no agent {name!r}", "memctl agent list shows them")
        path.unlink()

    # --- the file --------------------------------------------------------------------------------

    def _rows(self, table: str) -> Sequence[Mapping[str, Any]]:
        found = read_toml(self._path)
        place = display_path(self._path)
        check_keys(found, ("users", "teams"), prefix="", place=place)
        rows = found.get(table, [])
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise ConfigError(f"{place}: {table} must be tables", f"write [[{table}]] above each")
        return sorted(rows, key=lambda row: str(row.get("name")))

    def _save(
        self, *, users: Sequence[User] | None = None, teams: Sequence[Team] | None = None
    ) -> None:
        import tomli_w

        users = self.users() if users is None else users
        teams = self.teams() if teams is None else teams
        rows = {
            "users": [asdict(each) for each in users],
            "teams": [asdict(each) for each in teams],
        }
        save_file(self._path, tomli_w.dumps(rows).encode())

    def _lock_accounts(self) -> AbstractContextManager[None]:
        make_folder(self._home, mode=0o700)
        held = LockedError("another process is changing accounts.toml", "run this again")
        lock = self._path.with_name(f"{self._path.name}.lock")
        return hold_lock(lock, _WAIT_SECONDS, lambda: held)


def _valid_name(name: str, what: str) -> str:
    checked = checked_name(name, what)
    assert checked is not None
    return checked


def _user(row: Mapping[str, Any], place: str) -> User:
    check_keys(row, ("name", "title", "created_at"), prefix="users.", place=place)
    name, title, created_at = row.get("name"), row.get("title", ""), row.get("created_at")
    if not (isinstance(name, str) and isinstance(title, str) and isinstance(created_at, datetime)):
        raise ConfigError(f"{place}: a user has a name and a created_at", "write it anew")
    return User(name, created_at, title)


def _team(row: Mapping[str, Any], place: str) -> Team:
    check_keys(row, ("name", "agents"), prefix="teams.", place=place)
    name, agents = row.get("name"), row.get("agents", [])
    is_list = isinstance(agents, list) and all(isinstance(agent, str) for agent in agents)
    if not isinstance(name, str) or not is_list:
        raise ConfigError(f"{place}: a team has a name and a list of agents", "write it anew")
    return Team(name, tuple(agents))
