"""Secrets that are recognised by what stands before them: ``password=``, ``Bearer``, an address."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from memctl.patterns import lazy_regex
from memctl.redaction.secret_rule import Rule, Span, at, has_digit, secret_text

_BEARER = lazy_regex(
    r"(?i)\b((?:bearer|basic|authorization[\"']?\s*[=:]\s*[\"']?(?:token|api-?key|key))\s+)"
    r"(?:(?=\S*\d)[\w.~+/=-]{12,}|[\w.~+/=-]{30,})"
)
_KINDS = r"api|access|account|secret|encryption|private|signing|shared|client"
_OTHER_KINDS = (
    r"admin|anthropic|app|auth|azure|cohere|consumer|deepseek|deploy|gemini|groq|hmac|jwt|licen[cs]e"
    r"|master|mistral|openai|service|session|storage|subscription|webhook"
)
"""Of keys that have to look like one, too."""
_NAMES = (
    r"password|passwd|passphrase|passwort|kennwort|mot\ de\ passe|contrase[ñn]a"
    r"|(?<![^\W_])(?:pass|pwd?)|secret|token|credentials?"
    rf"|(?:{_KINDS}|{_OTHER_KINDS})[_-]?key"
)
_SUFFIX = r"(?:[_-](?:base|prod|production|dev|staging|live|old|new|primary|secondary|data))?"
_ASSIGNED = lazy_regex(
    rf"""(?ix)
    (
        (?:{_NAMES})s?{_SUFFIX}
        (?:
            [\"'\]`*\\]{{0,4}} \s* (?:=>|:=|[=:：]) \*{{0,2}} \s* (?:[|>][-+]?\s+)?  # name = value
          | [ ]+\|[ ]+(?=[^|\n]+[ ]\|)                    # a row of a table
          | >(?=[^<\n]+</)                                # an element
          | [\"']?[,;]?\s*[\"']?\bvalue[\"']?\s*[=:]\s*    # one that is named beside its value
          | [\"']\s*:\s*\{{\s*[\"']value[\"']\s*:\s*       # or above it
          | (?<=--password|..--secret|...--token)[ ]      # an option
        )
        (?:\\?[\"'`“‘])?
    )
    (?!\[redacted\])
    (?: (?<=[\"]) [^\"\\\n]{{4,200}} (?=\\?[\"])
      | (?<=') [^'\\\n]{{4,200}} (?=\\?')
      | (?<=`) [^`\n]{{4,200}} (?=`)
      | (?<=“) [^”\n]{{4,200}} (?=”)
      | (?:(?!</)[^\s\"',;`]){{4,}}
    )"""
)
_LINES = lazy_regex(
    rf"""(?ix)
    (
        (?:{_NAMES})s?{_SUFFIX}["']?:[ ]?[|>][-+]?\d?[ \t]*\n[ \t]+
    )
    [\w+/=-]{{16,}}(?:[ \t]*\n[ \t]+[\w+/=-]{{16,}}(?=[ \t]*(?:\n|\Z)))+"""
)
_SEVERAL = ("passwords", "passphrases", "secrets", "credentials")
_LISTED = lazy_regex(
    r"""(?ix)
    (
        (?:pass(?:word|phrase)|secret|credential)s["']?\s*[:=]\s*\[
    )
    \s{0,50}["'][^"'\n]{4,200}["'](?:\s{0,50},\s{0,50}["'][^"'\n]{4,200}["']){0,50}
    (?:\s{0,50},)?\s{0,50}\]"""
)
_ITEM = lazy_regex(r"""["']([^"'\n]{6,200})["']""")
_LOGIN = lazy_regex(
    r"(?i)(\blogin\s+\S{1,100}\s+password\s+|\bjdbc:oracle:\w+:[^\s:/@]{1,100}/"
    r"|\bsshpass\s+-p\s*|\bmysql\b[^\n]{0,100}\s-p)[^\s@]{4,100}"
)
_SQL = lazy_regex(r"(?i)\b((?:identified\s+by|with\s+password)\s+')[^'\n]{4,200}(?=')")
_IN_URL = lazy_regex(
    r"(\b[A-Za-z][A-Za-z0-9+.-]{0,20}://(?:[^\s:/@]{0,100}:(?!\d{1,5}/))?)"
    r"(?:(?<=:)[^\s\"'<>]{1,200}|(?<=/)(?=[\w-]*\d)[\w-]{20,200})(?=@[\w.\[-])"
)
_SIGNED = lazy_regex(
    r"([?&](?:sig|key|X-Amz-Signature|X-Goog-Signature)=|hooks\.slack\.com/services/"
    r"|discord(?:app)?\.com/api/webhooks/"
    r"|\.office\.com/webhook(?:b2)?/[\w@.-]{1,200}/IncomingWebhook/)[\w%+/=-]{30,}"
)
_USER = lazy_regex(
    r"(\bcurl\b[^\n]{0,200}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,100}:)[^\s\"']{4,200}"
)


_SHORTEST_VALUE = 6
_NOT_A_WORD = lazy_regex(r"\d|[^\W\d_][^\w\s.:/()\[\]-][^\W\d_]|[a-z][A-Z]")
"""A digit, a sign between letters, or a capital within: what words seldom have."""
_CODE = lazy_regex(
    r"^[A-Za-z_][\w.]+(?:\(.*\)|\[.*\]|[(\[]$)|\w\.\w+\.|^\w+\.[A-Z]\w+$"
    r"|^(?:os|self|env|process|config|settings)\.|^#[0-9A-Fa-f]{3,8}$"
    r"|^[$<{%].*[>}%)]$|^\$\w+$|^\$?[{(<]|^[/.*|>&\\=~+-]"
)
"""A call, an index, a placeholder, a dotted name, a colour, a path: what is no secret itself."""
_QUOTES = "\"'`“‘"
_CALL = lazy_regex(r"[A-Za-z_][\w.]*(?:\([^)]*|\[[^\]]*)$|0x[0-9A-Fa-f]{1,8}$")
"""The beginning of a call or an index, or a small number."""
_OWN_NAME = lazy_regex(
    r"\w*_(?:tokens?|passwords?|secrets?|keys?)|(?=\w*(?:Pass|Secret|Token|Key))(?:[a-z]+|[A-Z][a-z]+)"
    r"(?:[A-Z][a-z]+)*"
)
"""What a variable or a type for secrets is called."""
_PLACEHOLDER = lazy_regex(r"(?i)(?:pass(?:word|wd)?|pwd|secret|\*+|x+|\.+|[${<%\[].*[}>%\]]|\$\w+)")
_TOKEN = lazy_regex(r"(?=.*\d)(?=.*[^\W\d_]).{9,}|.{16,}")
"""What is called so is often a number of them, or the name of a standard."""
_IN_A_SENTENCE = lazy_regex(
    r"(?=\S*\d)(?=\S*[^\W\d_])\S{6,}|(?<!\S)(?=\S{4})\S*(?:[^\W\d_]\d|[a-z][$!#%^*])[a-z]"
)
"""Of several words, one that is none."""
_OF_OTHER_KIND = lazy_regex(rf"(?i)^(?:{_OTHER_KINDS})[_-]?key|[_-]data\b")
_LIKE_A_KEY = lazy_regex(r"(?=.*\d)(?=.*[^\W\d_])[\w+/=.-]{20,}")

_NAMED = lazy_regex("pass|pw|secret|token|credential|kennwort|contrase|key")
_KIND_OF_KEY = lazy_regex(rf"(?:{_KINDS}|{_OTHER_KINDS})[_-]?\Z")
_LONGEST_KIND = 13
_IN_FRENCH = "mot de "
_SCHEME = lazy_regex(r"(?<![A-Za-z0-9_])[A-Za-z]")
_LONGEST_SCHEME = 21
_NOT_IN_SCHEMES = lazy_regex(r"[^A-Za-z0-9+.-]")


def _names(_: str, low: str) -> Iterator[int]:
    """Yield where the name before an assignment may begin."""
    for match in _NAMED.finditer(low):
        here = match.start()
        if match[0] == "key":
            first = max(0, here - _LONGEST_KIND)
            if kind := _KIND_OF_KEY.search(low[first:here]):
                yield first + kind.start()
            continue
        if low.endswith(_IN_FRENCH, 0, here):
            yield here - len(_IN_FRENCH)
        yield here


def _schemes(text: str, _: str) -> Iterator[int]:
    """Yield where addresses may begin."""
    here = text.find("://")
    while here >= 0:
        before = text[max(0, here - _LONGEST_SCHEME) : here]
        ends = [match.end() for match in _NOT_IN_SCHEMES.finditer(before)]
        first = here - len(before) + (ends[-1] if ends else 0)
        yield from (match.start() for match in _SCHEME.finditer(text, first, here))
        here = text.find("://", here + 1)


def _is_secret_value(match: re.Match[str]) -> bool:
    """Return whether what follows ``password:`` etc. is no ordinary word or piece of code."""
    value = secret_text(match)
    if _CODE.search(value) or _OWN_NAME.fullmatch(value):
        return False
    if match[1][-1] not in _QUOTES and _CALL.match(value):
        return False
    if re.search(r"\s", value):
        return bool(_IN_A_SENTENCE.search(value))
    value = value.rstrip(".!?)]}>")
    name = match[1].lower()
    if _OF_OTHER_KIND.search(name) and not _LIKE_A_KEY.fullmatch(value):
        return False
    if "key" in name and not re.search(r"\d", value):
        return False
    if "token" in name and not _TOKEN.fullmatch(value):
        return False
    return len(value) >= _SHORTEST_VALUE and bool(_NOT_A_WORD.search(value))


def _is_no_placeholder(match: re.Match[str]) -> bool:
    """Return whether an address has more than ``user:password`` before its host."""
    return not _PLACEHOLDER.fullmatch(secret_text(match))


def _items(match: re.Match[str]) -> Iterable[Span]:
    """Return the spans of the items of a list that are no ordinary words."""
    found = _ITEM.finditer(match.string, match.end(1), match.end())
    return [each.span(1) for each in found if _NOT_A_WORD.search(each[1])]


_TRIGGERS = ("pass", "pw", "secret", "token", "credential", "kennwort", "contrase", "key")
ASSIGNED = (
    Rule((":|", ": |", ":>", ": >"), _LINES, _names, has_digit),
    Rule(_SEVERAL, _LISTED, at(*_SEVERAL), spans=_items),
    Rule(("bearer", "basic", "authorization"), _BEARER, at("bearer", "basic", "authorization")),
    Rule(_TRIGGERS, _ASSIGNED, _names, _is_secret_value),
    Rule(("identified by", "with password"), _SQL, at("identified", "with")),
    Rule(
        ("login", "jdbc:oracle", "pass", "mysql"),
        _LOGIN,
        at("login", "jdbc:oracle", "sshpass", "mysql"),
        _is_secret_value,
    ),
    Rule(("://",), _IN_URL, _schemes, _is_no_placeholder),
    Rule(
        ("sig=", "key", "signature=", "hooks.slack", "discord", ".office.com"),
        _SIGNED,
        at("?", "&", "hooks.slack", "discord", ".office.com"),
    ),
    Rule(("curl",), _USER, at("curl")),
)
