"""The addresses of endpoints and the keys that are sent there."""

from __future__ import annotations

import logging
import os
import re
import stat

from memctl.config.sections import Config
from memctl.errors import ConfigError
from memctl.literals import Task
from memctl.paths import display_path, expand_path

_log = logging.getLogger(__name__)

_PASSWORD = re.compile(r"://.*@", re.DOTALL)


def endpoint_key(config: Config, task: Task, url: str) -> str:
    """Return the key for a task's endpoint, "" where there is none to send.

    A task's own key counts; else that of [endpoint], which goes to the host of its base_url alone.

    Args:
        config: All settings.
        task: What is to be done there.
        url: The address of the task's endpoint.

    Raises:
        ConfigError: The file that should hold it cannot be read, or what is there is no key.
    """
    own: str = getattr(config.models, f"{task}_key")
    if own and ("/" in own or "\\" in own):
        return _key_in_file(own, f"models.{task}_key")
    if own:
        return _key_in_variable(own)
    common = config.endpoint
    if not _is_same_host(common.base_url, url):
        return ""
    if common.api_key_file:
        return _key_in_file(common.api_key_file, "endpoint.api_key_file")
    return _key_in_variable(common.api_key_env)


def _is_same_host(common: str, url: str) -> bool:
    """Say whether a key for one address may go to another: not in clear where it did not before."""
    from urllib.parse import urlsplit

    try:
        ours, theirs = urlsplit(common.strip()), urlsplit(url)
    except ValueError:  # an IPv6 address that is none
        return False
    return ours.hostname == theirs.hostname and (ours.scheme, theirs.scheme) != ("https", "http")


def _key_in_file(name: str, setting_: str) -> str:
    path = expand_path(name)
    try:
        key = path.read_text(encoding="utf-8-sig").strip()
        if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
            place = display_path(path)
            _log.warning("others on this machine can read %s: chmod 600 %s", place, place)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{setting_}: cannot read {display_path(path)}", "name a file with the key alone"
        ) from error
    return _sound_key(key, f"{setting_}: {display_path(path)}")


def _key_in_variable(name: str) -> str:
    return _sound_key(os.environ.get(name, "").strip(), f"environment {name}") if name else ""


def _sound_key(key: str, place: str) -> str:
    """Refuse what cannot be sent, without saying what it is."""
    if key and (not key.isascii() or not key.isprintable() or " " in key):
        raise ConfigError(
            f"{place} holds more than a key, or something else",
            "a key is one word of ASCII characters; let nothing else stand there",
        )
    return key


def check_base_url(url: str, name: str) -> str:
    """Return an endpoint's address, and refuse what is none.

    Args:
        url: The address.
        name: The setting that it is from.

    Raises:
        ConfigError: It is none, or holds a password, which would be shown wherever it is.
    """
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url.strip())
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port or an IPv6 address that is none
        is_one = False
    if not is_one:
        raise ConfigError(
            f"{name} is no address of an endpoint: {without_password(url)!r}",
            "it looks like http://localhost:11434/v1",
        )
    if "@" in parts.netloc:
        raise ConfigError(
            f"{name} holds a user name or a password, which would be shown with it",
            "leave it out; a key belongs into api_key_file or the variable that api_key_env names",
        )
    return url.strip()


def without_password(address: str) -> str:
    """Return an address, which need not be one, without the name and password in it."""
    return _PASSWORD.sub("://***@", address)
