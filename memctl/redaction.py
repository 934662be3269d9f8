"""Text without what looks like a key, a token or a password.

Few patterns that seldom err: prefixes that providers give their keys, the shapes of tokens, and
what is assigned to a name such as ``password``.  What people just say is left as it is.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import accumulate

MARK = "[redacted]"

_BLOCK = re.compile(
    r"-{4,5} ?BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}"
    r"(?:(?:(?!- ?BEGIN).){0,60000}?-{4,5} ?END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}"
    r"|(?:\s*(?:>\s?)*(?:(?:Proc-Type|DEK-Info|Comment): [^\n]*|[A-Za-z0-9+/=]{16,})(?!\S))*)"
    r"|\bPuTTY-User-Key-File-\d:(?:(?!PuTTY-User).){0,60000}?Private-MAC: [0-9a-f]+",
    re.DOTALL,
)
_KEY = re.compile(
    r"""(?<![\w-])(?:
        sk-[\w-]{16,}                                   # OpenAI, Anthropic and others
      | (?:xai|pplx)-\w{40,} | gsk_\w{40,}              # xAI, Perplexity, Groq
      | r8_\w{30,} | hf_[A-Za-z0-9]{20,}                # Replicate, Hugging Face
      | (?:sk|rk|pk)_(?:live|test)_\w{16,}              # Stripe
      | whsec_\w{20,}
      | gh[oprsu]_\w{20,} | github_pat_\w{20,}          # GitHub
      | gl(?:pat|rt|dt|cbt|ptt|soat)-[\w-]{16,}         # GitLab
      | xox[abeoprs]-[\w-]{10,} | xapp-\d-[\w-]{40,}    # Slack
      | \d{8,10}:AA[\w-]{33}(?![\w-])                   # Telegram
      | [MNO][A-Za-z\d]{23,27}\.[\w-]{6,7}\.[\w-]{27,}  # Discord
      | A(?:KIA|SIA)[A-Z0-9]{16}(?!\w)                  # AWS
      | AIza[\w-]{30,} | GOCSPX-[\w-]{20,}              # Google
      | ya29\.[\w-]{30,} | 1//0[\w-]{40,}
      | dapi[0-9a-f]{32} | do[opr]_v1_[0-9a-f]{64}      # Databricks, DigitalOcean
      | dckr_(?:pat|oat)_[\w-]{20,} | hv[bs]\.[\w-]{20,} # Docker, Vault
      | npm_[A-Za-z0-9]{30,} | pypi-[\w-]{40,}          # npm, PyPI
      | shp(?:at|ca|pa|ss)_[0-9a-f]{32}                 # Shopify
      | SG\.[\w-]{16,}\.[\w-]{30,} | key-[0-9a-f]{32}(?!\w) | [0-9a-f]{32}-us\d{1,2}(?!\w)  # mail
      | SK[0-9a-f]{32}(?!\w)                            # Twilio
      | lin_(?:api|oauth)_\w{30,} | ntn_\w{40,}         # Linear, Notion
      | secret_[A-Za-z0-9]{43}(?!\w)
      | PMAK-[0-9a-f]{24}-[0-9a-f]{34} | ATATT3[\w=-]{60,}  # Postman, Atlassian
      | AGE-SECRET-KEY-1[A-Z0-9]{58}
      | glsa_\w{32,} | tskey-[a-z]+-[\w-]{16,}          # Grafana, Tailscale
      | NRAK-[A-Z0-9]{27} | dp\.(?:pt|st|ct|sa)\.\w{40,}  # New Relic, Doppler
      | figd_[\w-]{36,} | sq0[a-z]{3}-[\w-]{20,}        # Figma, Square
      | pscale_(?:tkn|pw|oauth)_[\w.-]{32,}             # PlanetScale
      | pul-[0-9a-f]{40} | xkeysib-[0-9a-f]{64}-\w{16}  # Pulumi, Brevo
      | rubygems_[0-9a-f]{48} | \w{14}\.atlasv1\.[\w=-]{60,}  # RubyGems, Terraform
      | pat[A-Za-z0-9]{14}\.[0-9a-f]{64}               # Airtable
      | \w{3}\d?8Q~[\w.~-]{31,} | dt0c01\.[A-Z0-9]{24}\.[A-Z0-9]{64}  # Azure AD, Dynatrace
      | fo1_[\w-]{40,} | EAA[A-Za-z0-9]{90,}           # Fly, Facebook
      | CCIPAT_\w{22}_[0-9a-f]{40} | nvapi-[\w-]{60,}  # CircleCI, NVIDIA
      | sntry[su]_[\w=+/-]{40,} | ph[cx]_\w{40,}        # Sentry, PostHog
      | bk[au]a_[0-9a-f]{40} | sbp_[0-9a-f]{40}         # Buildkite, Supabase
      | vc[pk]_\w{50,} | HRKU-[0-9a-f-]{12,}            # Vercel, Heroku
      | sk\.eyJ[\w-]{20,}\.[\w-]{20,}                  # Mapbox
      | eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?            # JSON web tokens
    )""",
    re.VERBOSE,
)
_RANDOM = re.compile(
    r"(?<![\w/+-])(?=\w*\d)(?=\w*[a-z])(?:[0-9a-f]{32,}|(?=\w*[A-Z])[A-Za-z0-9]{32,})(?![\w/+-])"
)
_BEARER = re.compile(
    r"(?i)\b((?:bearer|basic|authorization[\"']?\s*[=:]\s*[\"']?(?:token|api-?key|key))\s+)"
    r"(?:(?=\S*\d)[\w.~+/=-]{12,}|[\w.~+/=-]{30,})"
)
_NAMES = (
    r"password|passwd|passphrase|passwort|kennwort|mot\ de\ passe|contrase[ñn]a"
    r"|(?<![^\W_])(?:pass|pwd?)|secret|token|credentials?"
    r"|(?:api|access|account|secret|encryption|private|signing)[_-]?key"
)
_ASSIGNED = re.compile(
    rf"""(?ix)
    (
        (?=[pkmcstaei])(?:{_NAMES})s?
        (?:
            [\"'\]`*\\]{{0,4}} \s* (?:=>|:=|[=:：]) \*{{0,2}} \s* (?:[|>][-+]?\s+)?  # name = value
          | [ ]+\|[ ]+(?=[^|\n]+[ ]\|)                    # a row of a table
          | >(?=[^<\n]+</)                                # an element
          | [\"']?[,;]?\s*[\"']?\bvalue[\"']?\s*[=:]\s*    # one that is named beside its value
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
_LOGIN = re.compile(
    r"(?i)(\blogin\s+\S{1,100}\s+password\s+|\bjdbc:oracle:\w+:[^\s:/@]{1,100}/"
    r"|\bsshpass\s+-p\s*|\bmysql\b[^\n]{0,100}\s-p)[^\s@]{4,100}"
)
_COOKIE = re.compile(r"(?i)(\b(?:set-)?cookie:\s*[\w-]{1,60}=)[\w.%+/=-]{20,}")
_SQL = re.compile(r"(?i)\b((?:identified\s+by|with\s+password)\s+')[^'\n]{4,200}(?=')")
_IN_URL = re.compile(
    r"(\b[A-Za-z][A-Za-z0-9+.-]{0,20}://(?:[^\s:/@]{0,100}:(?!\d{1,5}/))?)"
    r"(?:(?<=:)[^\s\"'<>]{1,200}|(?<=/)(?=[\w-]*\d)[\w-]{20,200})(?=@[\w.\[-])"
)
_SIGNED = re.compile(
    r"([?&](?:sig|key|X-Amz-Signature|X-Goog-Signature)=|hooks\.slack\.com/services/"
    r"|discord(?:app)?\.com/api/webhooks/)[\w%+/=-]{30,}"
)
_USER = re.compile(
    r"(\bcurl\b[^\n]{0,200}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,100}:)[^\s\"']{4,200}"
)
_TOLD_BY_WHAT_IS_BEFORE = (_BEARER, _ASSIGNED, _SQL, _LOGIN, _COOKIE, _IN_URL, _SIGNED, _USER)


_SHORTEST_VALUE = 6
_UNLIKE_WORDS = re.compile(r"\d|[^\W\d_][^\w\s.:/()\[\]-][^\W\d_]|[a-z][A-Z]")
"""A digit, a sign between letters, or a capital within: what words seldom have."""
_CODE = re.compile(
    r"^[A-Za-z_][\w.]+(?:\(.*\)|\[.*\]|[(\[]$)|\w\.\w+\.|^\w+\.[A-Z]\w+$"
    r"|^(?:os|self|env|process|config|settings)\.|^#[0-9A-Fa-f]{3,8}$"
    r"|^[$<{%].*[>}%)]$|^\$\w+$|^\$?[{(<]|^[/.*|>&\\=~+-]"
)
"""A call, an index, a placeholder, a dotted name, a colour, a path: what is no secret itself."""
_TOKEN = re.compile(r"(?=.*\d)(?=.*[^\W\d_]).{9,}|.{16,}")
"""What is called so is often a number of them, or the name of a standard."""
_IN_A_SENTENCE = re.compile(r"(?=\S*\d)(?=\S*[^\W\d_])\S{6,}")
"""Of several words, one that is none."""

Span = tuple[int, int]


def redacted(text: str) -> str:
    """Return ``text`` with ``[redacted]`` in place of what looks like a secret.

    That includes any long run of random letters and digits: whoever asks means no checksum.
    """
    return _masked(_RANDOM.sub(MARK, _masked(text, (_BLOCK, _KEY))), _TOLD_BY_WHAT_IS_BEFORE)


def _masked(text: str, patterns: Iterable[re.Pattern[str]]) -> str:
    for pattern in patterns:
        text = pattern.sub(_in_place_of, text)
    return text


def _in_place_of(match: re.Match[str]) -> str:
    return f"{match[1] or ''}{MARK}" if match.re.groups else MARK


def without_secrets(text: str) -> str:
    """Return a text of a document with ``[redacted]`` in place of what surely is a secret.

    Checksums and ids stay, and so does a word that follows ``password:`` in a sentence.
    """
    return redacted_with(text, ())[0]


def distinct_without_secrets(name: str) -> str:
    """Return a name as :func:`without_secrets` does; two that differ in a secret alone stay two.

    What tells them apart is a short hash of the whole.
    """
    clean = without_secrets(name)
    whole = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return name if clean == name else f"{clean}#{whole[:16]}"


def redacted_with(text: str, offsets: Sequence[int]) -> tuple[str, list[int]]:
    """Return a text as :func:`without_secrets` does, and where the places in it are then.

    Args:
        text: Of a document.
        offsets: Places in it; one within a secret will be where its ``[redacted]`` begins.
    """
    moved = list(offsets)
    for pattern in (_BLOCK, _KEY, *_TOLD_BY_WHAT_IS_BEFORE):
        spans = [_span(match) for match in pattern.finditer(text) if _is_sure(match)]
        if spans:
            moved = _moved(moved, spans)
            text = _without(text, spans)
    return text, moved


def _span(match: re.Match[str]) -> Span:
    """Where the secret stands, without what tells that it is one."""
    return (match.end(1) if match.re.groups else match.start()), match.end()


def _is_sure(match: re.Match[str]) -> bool:
    """Whether what follows ``password:`` and the like is no ordinary word or piece of code."""
    if match.re not in (_ASSIGNED, _LOGIN):
        return True
    value = match[0][match.end(1) - match.start() :]
    if _CODE.search(value):
        return False
    if re.search(r"\s", value):
        return bool(_IN_A_SENTENCE.search(value))
    value = value.rstrip(".!?)]}>")
    name = match[1].lower()
    if "key" in name and not re.search(r"\d", value):
        return False
    if "token" in name and not _TOKEN.fullmatch(value):
        return False
    return len(value) >= _SHORTEST_VALUE and bool(_UNLIKE_WORDS.search(value))


def _without(text: str, spans: Sequence[Span]) -> str:
    kept, last = [], 0
    for start, end in spans:
        kept += [text[last:start], MARK]
        last = end
    return "".join([*kept, text[last:]])


def _moved(offsets: Iterable[int], spans: Sequence[Span]) -> list[int]:
    """Where places are after each span has become a mark."""
    starts = [start for start, _ in spans]
    growth = [0, *accumulate(len(MARK) - (end - start) for start, end in spans)]
    moved = []
    for offset in offsets:
        number = bisect_left(starts, offset)  # so many spans begin before it
        if number and offset < spans[number - 1][1]:
            moved.append(spans[number - 1][0] + growth[number - 1])
        else:
            moved.append(offset + growth[number])
    return moved
