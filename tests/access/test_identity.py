"""Users, agents and conversations: where their names come from, and their namespaces."""

from __future__ import annotations

from pathlib import Path

import pytest

from memctl.config import load_config
from memctl.errors import ConfigError, UsageError
from memctl.identity import Identity, readable_by


def test_a_name_in_the_command_wins_over_the_environment(tmp_path: Path) -> None:
    environ = {"MEMCTL_HOME": str(tmp_path), "MEMCTL_USER": "ann", "MEMCTL_AGENT": "helper"}
    config = load_config({}, environ)
    assert Identity.of(config) == Identity("ann", "helper", None)
    assert Identity.of(config, user=" bob ", session="s1") == Identity("bob", "helper", "s1")


@pytest.mark.parametrize("name", ["", "  ", "a:b", "a\x1b[31mb", "x" * 201])
def test_a_name_that_cannot_be_one_is_refused(tmp_path: Path, name: str) -> None:
    environ = {"MEMCTL_HOME": str(tmp_path), "MEMCTL_USER": name} if name else None
    config = load_config({}, environ or {"MEMCTL_HOME": str(tmp_path)})
    if not name:
        assert Identity.of(config).user is None
        return
    with pytest.raises(UsageError, match="cannot be the name of a user"):
        Identity.of(config)


def test_a_user_reads_their_own_namespaces_and_the_shared_one(tmp_path: Path) -> None:
    config = load_config({}, {"MEMCTL_HOME": str(tmp_path)})
    assert readable_by(config.namespaces, "ann") == (
        "user:ann:conversations",
        "user:ann:documents",
        "organization:shared",
    )


def test_a_namespace_template_that_all_users_would_share_is_refused(tmp_path: Path) -> None:
    environ = {"MEMCTL_HOME": str(tmp_path), "MEMCTL_NAMESPACES_DOCUMENTS": "everybody"}
    config = load_config({}, environ)
    with pytest.raises(ConfigError, match="the same for every user"):
        readable_by(config.namespaces, "ann")
