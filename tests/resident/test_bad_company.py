"""Whatever is wrong with the resident process, a command gives the right answer, and once."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from platformdirs import user_config_path, user_data_path
from waiting import wait_for

from memctl import __version__
from memctl.cli.main import run
from memctl.config import load_config
from memctl.resident import client
from memctl.resident.client import ask, find_home
from memctl.resident.processes import resident_beside, resident_status
from memctl.resident.protocol import FOLDER, SOCKET, fingerprint, greeting, identity_of

LISTING = ["memory", "list"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    monkeypatch.setenv("MEMCTL_HOME", str(home))
    monkeypatch.delenv("MEMCTL_RESIDENT_ENABLED", raising=False)
    (home / FOLDER).mkdir(mode=0o700, parents=True)
    return home


def hello(place: Path, **changes: object) -> bytes:
    said = greeting(__version__, identity_of(str(place)), fingerprint()) | changes
    return json.dumps(said).encode() + b"\n"


@contextmanager
def impostor(home: Path, serve: Callable[[socket.socket], None]) -> Iterator[None]:
    """Have something else serve one client at the socket."""
    path = home / FOLDER / SOCKET
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(path))
        listener.listen()

        def accept() -> None:
            peer, _ = listener.accept()
            with peer:
                serve(peer)

        thread = threading.Thread(target=accept)
        thread.start()
        yield
        thread.join()
    path.unlink()


def after_request(home: Path, reply: bytes) -> Callable[[socket.socket], None]:
    def serve(peer: socket.socket) -> None:
        peer.sendall(hello(home))
        peer.recv(1 << 20)
        peer.sendall(reply)

    return serve


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"\n\n",
        b'{"code": 0, "pie',
        b'{"code": 0, "pieces": [[1, 10]]}\nonly ',
        b'{"refused": true}\n',
        b"nonsense\n",
        b"[]\n",
    ],
)
def test_a_process_that_ends_in_the_middle_of_an_answer_has_shown_nothing(
    home: Path, reply: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    with impostor(home, after_request(home, reply)):
        assert ask(LISTING, __version__) is None
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "changes", [{"version": "0.0.1"}, {"protocol": 99}, {"home": "1:1"}, {"settings": "other"}]
)
def test_a_process_of_another_kind_is_left_alone(home: Path, changes: dict[str, object]) -> None:
    received = []

    def serve(peer: socket.socket) -> None:
        peer.sendall(hello(home, **changes))
        received.append(peer.recv(1))

    with impostor(home, serve):
        assert ask(LISTING, __version__) is None
    assert received == [b""], "nothing is sent to it"


def test_one_that_is_busy_is_not_waited_for(home: Path) -> None:
    is_over = threading.Event()
    with impostor(home, lambda _: is_over.wait() and None):
        assert ask(LISTING, __version__) is None
        is_over.set()


def test_a_silent_resident_process_counts_as_dead(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "SILENT_SECONDS", 0.1)
    is_over = threading.Event()

    def serve(peer: socket.socket) -> None:
        peer.sendall(hello(home))
        is_over.wait()

    with impostor(home, serve):
        assert ask(LISTING, __version__) is None
        is_over.set()


def test_a_socket_that_nobody_listens_at_is_passed_over_and_replaced(home: Path) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as left:
        left.bind(str(home / FOLDER / SOCKET))
    assert ask(LISTING, __version__) is None
    assert run(["resident", "start", "-q"]) == 0
    assert resident_status(home, __version__).usable
    assert run(["resident", "stop", "-q"]) == 0


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_folder_that_others_may_enter_is_not_trusted(home: Path, mode: int) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(home / FOLDER / SOCKET))
        listener.listen()
        (home / FOLDER).chmod(mode)
        assert ask(LISTING, __version__) is None
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert run(["resident", "start"]) == 1


def test_a_folder_of_another_user_is_not_trusted(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(home / FOLDER / SOCKET))
        listener.listen()
        monkeypatch.setattr(os, "getuid", lambda: 4711)
        assert ask(LISTING, __version__) is None
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_the_switch_turns_it_off(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMCTL_RESIDENT_ENABLED", "false")
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(home / FOLDER / SOCKET))
        listener.listen()
        assert ask(LISTING, __version__) is None
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home whose path is too long for a socket, with a resident process."""
    home = tmp_path_factory.mktemp("long" * 30) / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMCTL_HOME", str(home))
        patch.delenv("MEMCTL_RESIDENT_ENABLED", raising=False)
        assert run(["memory", "add", "The boat is blue.", "-q"]) == 0
        assert run(["resident", "start", "-q"]) == 0
        yield home
        assert run(["resident", "stop", "-q"]) == 0


def listing(capfd: pytest.CaptureFixture[str]) -> tuple[int | None, str]:
    """Have the process list the memories, and return what was shown."""
    capfd.readouterr()
    code = ask(LISTING, __version__)
    return code, capfd.readouterr().out


def test_clients_that_say_nothing_or_do_not_read_hold_nobody_up(
    running: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "connect", patient(client.connect))
    descriptor = os.open(running / FOLDER, os.O_RDONLY)
    path = f"/proc/self/fd/{descriptor}/{SOCKET}"
    clients = []
    for number in range(60):
        peer = socket.socket(socket.AF_UNIX)
        peer.connect(path)
        if number % 2:
            peer.close()  # it has given up
        elif number == 0:
            peer.sendall(b"nonsense\n")
        elif number == 2:
            peer.sendall(json.dumps({"arguments": LISTING}).encode() + b"\n")
        clients.append(peer)
        if number == 4:
            break
    code, out = listing(capfd)
    assert code == 0
    assert "The boat is blue." in out
    for peer in clients:
        peer.close()
    os.close(descriptor)


def patient(connect: Callable[..., object]) -> Callable[..., object]:
    """Wait for as long as it takes: a machine may be slow, and the test is about something else."""
    return lambda folder, _=0.0: connect(folder, 60.0)


def answered(*words: str) -> int:
    """Ask until the resident process answers, which on a busy machine may be too late at first."""
    codes: list[int] = []

    def is_answered() -> bool:
        code = ask([*words], __version__)
        codes.extend([] if code is None else [code])
        return bool(codes)

    wait_for(is_answered)
    return codes[0]


def test_a_knowledge_base_that_was_replaced_is_read_anew(
    running: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "connect", patient(client.connect))
    assert run(["kb", "create", "other", "--always-on"]) == 0
    assert run(["memory", "add", "The roof is red.", "-k", "other", "-q"]) == 0
    capfd.readouterr()
    code = answered("query", "What is the roof?", "-k", "other", "--no-answer")
    assert (code, "The roof is red." in capfd.readouterr().out) == (0, True)
    assert run(["kb", "delete", "other", "--yes"]) == 0
    assert answered("memory", "list", "-k", "other") == 10
    assert run(["kb", "create", "other", "--always-on"]) == 0
    assert run(["memory", "add", "The roof is green.", "-k", "other", "-q"]) == 0
    capfd.readouterr()
    assert answered("query", "What is the roof?", "-k", "other", "--no-answer") == 0
    out = capfd.readouterr().out
    assert "The roof is green." in out
    assert "red" not in out
    assert run(["kb", "delete", "other", "--yes"]) == 0


def test_a_killed_process_leaves_nothing_that_holds_the_next_one_up(
    running: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "connect", patient(client.connect))
    pid = resident_status(running, __version__).pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert run(["resident", "stop", "-q"]) == 0
    assert ask(LISTING, __version__) is None
    assert run(["resident", "start", "-q"]) == 0
    assert listing(capfd)[0] == 0


def test_only_its_owner_can_connect(running: Path) -> None:
    assert (running / FOLDER).stat().st_mode & 0o777 == 0o700
    assert (running / FOLDER / SOCKET).stat().st_mode & 0o777 == 0o600


def test_there_is_one_of_them(running: Path) -> None:
    before = resident_status(running, __version__).pid
    assert run(["resident", "start", "-q"]) == 0
    assert resident_status(running, __version__).pid == before


def test_a_resident_process_beside_a_command_ends_with_it(home: Path) -> None:
    with resident_beside(load_config({"home": str(home)})):
        while not resident_status(home, __version__).running:
            pass
    assert not resident_status(home, __version__).running


@pytest.mark.parametrize(
    "named",
    ["flag", "variable", "file in the place of the system", "file that is named", "nothing"],
)
def test_the_home_is_found_as_the_settings_find_it(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MEMCTL_HOME", "MEMCTL_CONFIG", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    arguments, flags = ["query", "x"], {}
    if named == "flag":
        arguments, flags = ["--home", "here", *arguments], {"home": "here"}
    elif named == "variable":
        monkeypatch.setenv("MEMCTL_HOME", "~/there")
    elif named == "file that is named":
        (tmp_path / "my.toml").write_text('home = "beside"\n')
        monkeypatch.setenv("MEMCTL_CONFIG", "my.toml")
    elif named != "nothing":
        folder = user_config_path("memctl", appauthor=False)
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text('home = "~/elsewhere"\n')
    assert find_home(arguments) == str(load_config(flags).home)
    if named == "nothing":
        assert find_home(arguments) == str(user_data_path("memctl", appauthor=False))
