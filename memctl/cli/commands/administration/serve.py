"""memctl serve and open: what is remembered over HTTP, and as pages in a browser."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from memctl.cli.arguments import parse_path
from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import KnowledgeBasesOption, command, flag
from memctl.cli.rendering.output_formats import print_text
from memctl.errors import UsageError

if TYPE_CHECKING:
    from memctl.server.http_server import RunningServer, ServerAddress
    from memctl.server.proxy import ProxySettings

app = typer.Typer()

_PACKAGES = ("starlette", "uvicorn", "jinja2", "python_multipart")
PortOption = Annotated[
    int, typer.Option("--port", min=0, max=65535, help="The port; 0 for any that is free.")
]


@command(
    app,
    "serve",
    """
    memctl serve
    memctl serve --port 9000 --read-only
    memctl serve -k notes -k diary
    """,
)
def serve(
    context: CommandContext,
    host: str = typer.Option("127.0.0.1", "--host", help="The address to listen on."),
    port: PortOption = 8420,
    socket: str | None = typer.Option(
        None, "--socket", metavar="FILE", help="Listen on a Unix socket instead."
    ),
    token_file: str | None = typer.Option(
        None, "--token-file", metavar="FILE", help="The token; by default one in the home."
    ),
    allow_origin: list[str] | None = typer.Option(
        None, "--allow-origin", metavar="URL", help="Let pages of it ask, too; repeatable."
    ),
    read_only: bool = flag("--read-only", "Refuse everything that changes something."),
    proxy: str | None = typer.Option(
        None, "--proxy", metavar="URL", help="Pass chats on to this OpenAI-compatible endpoint."
    ),
    proxy_wait: float = typer.Option(
        0.15, "--proxy-wait", min=0.0, max=60.0, help="Seconds that a chat waits for memory."
    ),
    kb: KnowledgeBasesOption = None,
) -> None:
    """Serve memory over HTTP to programs and a browser.

    It listens on this machine alone, unless --host says otherwise, and every request has to send
    the token, which is made on the first start and kept in the home.  For a browser it prints a
    link that can be used once.

    With -k only these knowledge bases are served.  Without, all are that are not private.

    With --proxy, programs that speak to an OpenAI-compatible endpoint speak to this server instead:
    memory is put in where it bears on a message, and both sides are remembered.  Nothing else of
    what is known is sent there.

    Ctrl-C or SIGTERM ends it, after what is in hand.  It needs the extra serve.
    """
    _require_packages("serve")
    from memctl.resident.processes import resident_beside
    from memctl.server.http_server import ServerOptions, warning_of
    from memctl.server.http_server import serve as run

    options = ServerOptions(
        host=host,
        port=port,
        socket=None if socket is None else parse_path(socket),
        token_file=None if token_file is None else parse_path(token_file),
        allow_origins=tuple(allow_origin or ()),
        kbs=tuple(kb or ()),
        read_only=read_only,
        proxy=None if proxy is None else _proxy_settings(context, proxy, proxy_wait),
    )

    def announce(address: ServerAddress, _: RunningServer) -> None:
        """Say where the server is and how to log in."""
        where = f"the socket {address.socket}" if address.socket else address.url
        context.say(f"serving {context.config.home} at {where}")
        context.say(f"the token is in {address.token_file}")
        if address.socket is None:
            context.say(f"open once in a browser: {address.login}")

    if warning := warning_of(options):
        context.say(f"warning: {warning}")
    with resident_beside(context.config):
        run(context.home, options, announce)


def _proxy_settings(context: CommandContext, url: str, wait: float) -> ProxySettings:
    """Return the settings of the endpoint behind the proxy, with the key configured for it."""
    from memctl.config import endpoint_key
    from memctl.server.proxy import ProxySettings

    found = replace(ProxySettings.of(url), wait_seconds=wait)
    endpoint = context.config.endpoint.base_url
    if not endpoint or ProxySettings.of(endpoint).upstream != found.upstream:
        return found
    return replace(found, key=endpoint_key(context.config, "answer", url))


@command(
    app,
    "open",
    """
    memctl open
    memctl open -k diary
    memctl open --print
    """,
)
def open_(
    context: CommandContext,
    print_: bool = flag("--print", "Print the link instead of opening a browser."),
    kb: KnowledgeBasesOption = None,
) -> None:
    """Open memory as pages in a browser.

    Where memctl serve is not running, this serves on a free port of this machine, until the last
    tab with a page of it has been closed for a minute or Ctrl-C.  The link lets a browser in once.

    With -k a server that is started serves these knowledge bases alone, even if they are private. A
    running server keeps serving what it was started with; if it does not serve what -k names, stop
    it first.
    """
    _require_packages("open")
    from memctl.resident.processes import resident_beside
    from memctl.server.http_server import (
        ServerOptions,
        new_login,
        require_served,
        running_server,
    )
    from memctl.server.http_server import serve as run

    if (address := running_server(context.config.home)) is not None:
        require_served(address, context.home, kb or ())
        _show_page(context, new_login(address), to_print=print_)
        return
    options = ServerOptions(port=0, kbs=tuple(kb or ()), ends_with_tabs=True)

    def announce(address: ServerAddress, _: RunningServer) -> None:
        """Open the page of the server that has just started."""
        _show_page(context, address.login, to_print=print_)
        context.say(
            f"serving {context.config.home} at {address.url} until its tabs are closed, or Ctrl-C"
        )

    with resident_beside(context.config):
        run(context.home, options, announce)


def _show_page(context: CommandContext, link: str, *, to_print: bool) -> None:
    """Open a link in a browser; print it if asked to, or if there is no browser."""
    import webbrowser

    if to_print:
        print_text(link)
    elif webbrowser.open(link):
        context.say("opened the page in a browser")
    else:
        context.say(f"no browser could be opened; open this once: {link}")


def _require_packages(command: str) -> None:
    """Refuse where the packages of the extra are not installed.

    Raises:
        UsageError: They are not.
    """
    if missing := [name for name in _PACKAGES if importlib.util.find_spec(name) is None]:
        raise UsageError(
            f"memctl {command} needs {', '.join(missing)}",
            "pip install -e '.[serve]' in the checkout",
        )
