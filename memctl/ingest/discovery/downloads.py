"""A page of the web is fetched by its URL: within bounds, and not from a private network.

Every address that a host name stands for is checked, at every redirect, and the connection goes to
the address that was checked: the owner of the name cannot change its address in between.
No proxy is used.  It knows nothing of what becomes of a page.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from msgspec import Struct

from memctl.config import WebSettings
from memctl.errors import MemctlError, OverLimit, UnreadableSource
from memctl.ingest.discovery.sources import is_url, plain_url
from memctl.paths import display_path

MOST_REDIRECTS = 5
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_BLOCK = 1 << 16
_ALLOW = "give --allow-private if it is meant to be fetched from there"
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_SAFE = "%/:=&?~#+!$,;'@()*[]"
_HEADERS = {
    "User-Agent": "memctl",
    "Accept": "text/html,application/xhtml+xml,*/*;q=0.8",
    "Accept-Encoding": "gzip",
}


class Download(Struct, frozen=True):
    """What a URL gave."""

    content: bytes
    name: str
    """A file name to judge it by."""
    modified: datetime | None
    """When it last changed, if the server says so."""


def download(url: str, settings: WebSettings) -> Download:
    """Fetch a page.

    Args:
        url: With ``http`` or ``https``.
        settings: How long it may take in all, how big it may be, and whether it may be private.

    Raises:
        UnreadableSource: It is refused, not found, takes too long, or cannot be fetched.
        OverLimit: It is too big.
    """
    deadline = time.monotonic() + settings.seconds
    shown = display_path(url)
    try:
        for _ in range(MOST_REDIRECTS + 1):
            found = _fetch(url, settings, deadline)
            if isinstance(found, Download):
                return found
            url = plain_url(urljoin(url, found))
    except MemctlError as error:
        raise type(error)(f"cannot fetch {shown}: {error.message}", error.hint) from error
    except (OSError, http.client.HTTPException, ValueError, zlib.error) as error:
        if isinstance(error, TimeoutError) or time.monotonic() >= deadline:
            why = f"it takes more than {settings.seconds:g} seconds"
            hint = "try again later; web.seconds in the settings allows more"
        else:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            hint = "check the address and the network, then try again"
        raise UnreadableSource(f"cannot fetch {shown}: {why}", hint) from error
    why = f"it redirects more than {MOST_REDIRECTS} times"
    raise UnreadableSource(f"cannot fetch {shown}: {why}", "name the page that it leads to")


def _fetch(url: str, settings: WebSettings, deadline: float) -> Download | str:
    """Return what a URL gives, or where it leads."""
    parts = urlsplit(url)
    if not is_url(url) or not parts.hostname:
        raise UnreadableSource(f"{display_path(url)} is no http or https address", "check it")
    target = quote(parts.path or "/", _SAFE) + (f"?{quote(parts.query, _SAFE)}" * bool(parts.query))
    with _connect(parts, settings, deadline) as connection:
        connection.request("GET", target, headers=_HEADERS)
        answer = connection.getresponse()
        leads_to = answer.getheader("Location")
        if answer.status in _REDIRECTS and leads_to:
            return leads_to
        if answer.status != http.client.OK:
            why = f"the server says {answer.status} {answer.reason}".rstrip()
            raise UnreadableSource(why, "check the address in a browser")
        content = _content(answer, settings, deadline)
        kind = answer.headers.get_content_type()
        return Download(content, _name(parts, kind), _modified_at(answer))


@contextmanager
def _connect(
    parts: SplitResult, settings: WebSettings, deadline: float
) -> Iterator[http.client.HTTPConnection]:
    """Connect to a host, and cut the connection at the deadline, however little comes of it."""
    host, is_secure = str(parts.hostname), parts.scheme.lower() == "https"
    port = parts.port or (443 if is_secure else 80)
    made = http.client.HTTPSConnection if is_secure else http.client.HTTPConnection
    with closing(made(host.encode("idna").decode(), port)) as connection:
        sock = connection.sock = _socket(host, port, settings, deadline)

        def close_socket() -> None:
            with suppress(OSError):  # it has been closed
                sock.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(max(0.0, deadline - time.monotonic()), close_socket)
        timer.daemon = True
        timer.start()
        try:
            if is_secure:
                context = ssl.create_default_context()
                sock = connection.sock = context.wrap_socket(
                    sock,
                    server_hostname=connection.host,
                    do_handshake_on_connect=False,
                )
                sock.do_handshake()
            yield connection
        finally:
            timer.cancel()


def _socket(host: str, port: int, settings: WebSettings, deadline: float) -> socket.socket:
    """Connect to the first address of a host that answers; all of them are checked before."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    if not settings.allow_private:
        for *_, address in found:
            if not _is_public(str(address[0])):
                raise UnreadableSource(f"{host} is on this machine or a private network", _ALLOW)
    problem: OSError = TimeoutError()
    for family, kind, protocol, _, address in found:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        sock = socket.socket(family, kind, protocol)
        sock.settimeout(left)
        try:
            sock.connect(address)
        except OSError as error:
            sock.close()
            problem = error
        else:
            return sock
    raise problem


def _is_public(text: str) -> bool:
    """Return whether an address, and an IPv4 address in it, is one of the public internet."""
    address = ipaddress.ip_address(text)
    carried: list[Any] = [address]
    if isinstance(address, ipaddress.IPv6Address):
        carried += [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
        if address in _NAT64:
            carried.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        if address.ipv4_mapped is not None:
            carried.remove(address)  # which no version of Python calls global
    return all(each.is_global and not each.is_multicast for each in carried if each is not None)


def _content(answer: http.client.HTTPResponse, settings: WebSettings, deadline: float) -> bytes:
    """Read an answer, unpacked."""
    most = settings.megabytes << 20
    is_packed = (answer.getheader("Content-Encoding") or "").lower() in ("gzip", "x-gzip")
    unpacker = zlib.decompressobj(wbits=31) if is_packed else None
    content = bytearray()
    while block := answer.read1(_BLOCK):
        content += block if unpacker is None else unpacker.decompress(block, most + 1)
        if time.monotonic() >= deadline:
            raise TimeoutError
        if len(content) > most:
            hint = "download it, then ingest the file; web.megabytes in the settings allows more"
            raise OverLimit(f"it has more than {settings.megabytes:,} MB", hint)
    if time.monotonic() >= deadline:  # it has been cut off
        raise TimeoutError
    if unpacker is not None and not unpacker.eof:
        raise zlib.error("it is cut off")
    if answer.length:
        raise http.client.IncompleteRead(bytes(content), answer.length)
    return bytes(content)


def _name(parts: SplitResult, kind: str) -> str:
    """Return a file name: the last part of the path, which is a page where the server says so."""
    last = unquote(parts.path.rstrip("/").rpartition("/")[2]).replace("/", " ")
    name = last or str(parts.hostname)
    is_page = kind in ("text/html", "application/xhtml+xml")
    return f"{name}.html" if is_page and not name.lower().endswith((".html", ".htm")) else name


def _modified_at(answer: http.client.HTTPResponse) -> datetime | None:
    try:
        return parsedate_to_datetime(answer.getheader("Last-Modified") or "")
    except ValueError:
        return None
