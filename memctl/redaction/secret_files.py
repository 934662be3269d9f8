"""Secrets that are told by the kind of file that they stand in: of passwords, keys or settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from memctl.redaction.secret_rule import Rule, Span, Starts, at

_PGPASS = re.compile(
    r"(?m)^((?:[\w.-]{1,100}|\*):(?:543\d|6432|\*):(?!\d+:)[^:\s]{1,63}:[^:\s]{1,63}:)[^\s:]{4,200}$"
)
_HASHED = re.compile(
    r"""(?x)
    (?:\$(?:1|apr1)\$[./\w]{1,8}\$[./\w]{22}
      | \$2[abxy]?\$\d\d\$[./\w]{53}
      | \$(?:5|6)\$(?:rounds=\d+\$)?[./\w]{1,16}\$[./\w]{43,86}
      | \$g?y\$[./\w]{3,8}\$[./\w]{1,86}\$[./\w]{43}
      | \$argon2(?:id|i|d)\$v=\d+\$[\w=,]+\$[\w+/]{8,}\$[\w+/]{16,}
    )(?![./\w])"""
)
_HASHES = ("$1$", "$apr1$", "$2", "$5$", "$6$", "$y$", "$gy$", "$argon2")
_VAULT = re.compile(r"(?m)^([ \t]*\$ANSIBLE_VAULT;[^\n]{1,80}\n)(?:[ \t]*[0-9a-f]{8,80}(?:\n|\Z))+")
_OF_KUBERNETES = re.compile(
    r"(?m)^([ \t]*)(?:data|stringData):[ \t]*(?:\n\1[ \t]+[^\n]*)+"
    r'|"(?:data|stringData)"\s*:\s*\{[^{}]*\}'
)
_IS_SECRET = re.compile(r"""(?m)^\s*kind: ["']?Secret["']?[ \t]*$|"kind": ?"Secret\"""")
_MANIFESTS = (
    "kind: secret", 'kind: "secret"', "kind: 'secret'", '"kind": "secret"', '"kind":"secret"',
)  # fmt: skip
_VALUE = re.compile(
    r"""(?m)^[ \t]+(?:[\w.-]+:[ \t]+(?![|>]))?["']?([^\s:"']{2,})["']?[ \t]*$|:\s*"([^"\n]{2,})\""""
)
_NEXT_DOCUMENT = "\n---"
_NEARBY = 5000
"""So many letters before and after something say what it is of."""
_LONGEST_LINE = 300
_LOGIN_OF_REGISTRY = re.compile(r'("auth"\s*:\s*")(?=[A-Za-z+/]*\d)[A-Za-z0-9+/]{16,}={0,2}(?=")')
_MADE_BY_TERRAFORM = re.compile(
    r'(?s)("random_password"(?:(?!"type").){0,3000}?"result"\s*:\s*")[^"\n]{4,200}(?=")'
)
_OF_JWK = re.compile(r'("(?:d|p|q|dp|dq|qi|k)"\s*:\s*")[\w-]{20,}(?=")')
_SHARED_WITH_WIFI = re.compile(r'(?i)\b(psk\s*=\s*")[^"\n]{8,63}(?=")')
_COOKIES = re.compile(r"(?i)\bcookie:[^\n]{8,}")
_COOKIE = re.compile(
    r"(?i)(?:cookie:|;)\s*(?!path|domain|expires|max-age)[\w.-]{1,60}=([\w.%+/=-]{20,})"
)
_COMMANDS = (
    "docker", "podman", "helm", "nerdctl", "skopeo", "redis-cli", "mongo", "convertto", "echo",
)  # fmt: skip
_COMMAND = re.compile(
    r"""(?ix)
    (
        \b(?:
            (?:docker|podman|helm|nerdctl|skopeo)\b[^\n]{0,80}\blogin\b[^\n]{0,100}\s-p[ ]
          | redis-cli\b[^\n]{0,100}\s-a[ ]
          | mongo(?:sh|dump|restore|export|import)?\b[^\n]{0,150}\s-p[ ]
          | ConvertTo-SecureString\s+(?:-String\s+)?(?=["'])
          | echo\s+["']?[\w.-]{1,32}:(?=[^\n|]{4,100}\|\s*(?:sudo\s+)?chpasswd)
        )["']?
    )
    (?=[^\s"']*[\d\W_])[^\s"']{4,100}"""
)


def _lines_with(*words: str) -> Starts:
    """Tell where the lines begin that words stand in."""
    found = at(*words)

    def starts(text: str, low: str) -> Iterator[int]:
        """Look for them."""
        for place in found(text, low):
            first = max(0, place - _LONGEST_LINE)
            here = text.rfind("\n", first, place) + 1
            if here or not first:
                yield here

    return starts


def _data(text: str, low: str) -> Iterator[int]:
    """Tell where the data of manifests may begin: at a line, or at a key in quotes."""
    in_quotes = at('"data"', '"stringdata"')
    lines = _lines_with("data:", "stringdata:")
    return iter(sorted({*in_quotes(text, low), *lines(text, low)}))


def _is_of_secret(match: re.Match[str]) -> bool:
    """Whether the manifest that data is of is one of a secret."""
    before, after = _around(match)
    is_yaml = not match[0].startswith('"')
    before = before.rpartition(_NEXT_DOCUMENT)[2] if is_yaml else before
    after = after.partition(_NEXT_DOCUMENT)[0] if is_yaml else after
    return bool(_IS_SECRET.search(before) or _IS_SECRET.search(after))


def _around(match: re.Match[str]) -> tuple[str, str]:
    """Return what stands before something and after it, as far as it is near."""
    text, start, end = match.string, match.start(), match.end()
    return text[max(0, start - _NEARBY) : start], text[end : end + _NEARBY]


def _values(match: re.Match[str]) -> Iterable[Span]:
    found = _VALUE.finditer(match.string, match.start(), match.end())
    return [each.span(each.lastindex or 0) for each in found]


def _is_of_jwk(match: re.Match[str]) -> bool:
    """Whether the object that it is in says what kind of key it is."""
    before, after = _around(match)
    return '"kty"' in before.rpartition("{")[2] or '"kty"' in after.partition("}")[0]


def _cookies(match: re.Match[str]) -> Iterable[Span]:
    found = _COOKIE.finditer(match.string, match.start(), match.end())
    return [each.span(1) for each in found]


FILES = (
    Rule((":543", ":6432:", ":*:"), _PGPASS, _lines_with(":543", ":6432:", ":*:")),
    Rule(("$",), _HASHED, at(*_HASHES)),
    Rule(("$ansible_vault",), _VAULT, _lines_with("$ansible_vault")),
    Rule(_MANIFESTS, _OF_KUBERNETES, _data, _is_of_secret, _values),
    Rule(('"auth"',), _LOGIN_OF_REGISTRY, at('"auth"')),
    Rule(('"random_password"',), _MADE_BY_TERRAFORM, at('"random_password"')),
    Rule(
        ('"kty"',),
        _OF_JWK,
        at('"d"', '"p"', '"q"', '"dp"', '"dq"', '"qi"', '"k"'),
        _is_of_jwk,
    ),
    Rule(("psk",), _SHARED_WITH_WIFI, at("psk")),
    Rule(("cookie",), _COOKIES, at("cookie:"), spans=_cookies),
    Rule((" -p ", " -a ", "-securestring", "chpasswd"), _COMMAND, at(*_COMMANDS)),
)
