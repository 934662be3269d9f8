"""Secrets that are known by their shape, or by the kind of file that they stand in.

The shapes are prefixes that providers give their keys, and blocks of keys; the files are those of
passwords, keys or settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from heapq import merge

from memctl.patterns import lazy_regex
from memctl.redaction.secret_rule import Rule, Span, Starts, at

_BLOCK = lazy_regex(
    r"-{4,5} ?BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}"
    r"(?:(?:(?!- ?BEGIN).){0,60000}?-{4,5} ?END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}"
    r"|(?:\s*(?:>\s?)*(?:(?:Proc-Type|DEK-Info|Comment): [^\n]*|[A-Za-z0-9+/=]{16,})(?!\S))*)"
    r"|\bPuTTY-User-Key-File-\d:(?:(?!PuTTY-User).){0,60000}?Private-MAC: [0-9a-f]+",
    re.DOTALL,
)
_KEY = lazy_regex(
    r"""(?:(?<![\w-])|(?<=/bot))(?:
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
      | lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10} | tvly-(?:dev-|prod-)?\w{28,}  # LangSmith, Tavily
      | ops_eyJ[\w-]{60,} | re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}  # 1Password, Resend
      | xsmtpsib-[0-9a-f]{64}-\w{16} | sk_[0-9a-f]{48}(?!\w)  # Brevo, ElevenLabs
      | pcsk_\w{40,} | fc-[0-9a-f]{32}(?!\w) | csk-\w{40,}  # Pinecone, Firecrawl, Cerebras
      | nfp_\w{36,} | rnd_[A-Za-z0-9]{28,} | sgp_\w{40,}  # Netlify, Render, Sourcegraph
      | ATBB[A-Za-z0-9]{32} | ATCTT3[\w=-]{60,} | AKCp[A-Za-z0-9]{60,}  # Bitbucket, Artifactory
      | pat-(?:na|eu)\d-[0-9a-f-]{36} | apify_api_\w{36} | pnu_\w{36}  # HubSpot, Apify, Prefect
      | LTAI[A-Za-z0-9]{16,20}(?!\w) | ABSK[A-Za-z0-9+/=]{100,}  # Alibaba, Bedrock
      | [xyzt]prv[1-9A-HJ-NP-Za-km-z]{90,} | nsec1[02-9ac-hj-np-z]{58}  # wallets, Nostr
      | (?=\w*[a-z])(?=\w*\d)(?:5[HJK][1-9A-HJ-NP-Za-km-z]{49}|[KL][1-9A-HJ-NP-Za-km-z]{51})(?!\w)
      | RWRTY0Iy[A-Za-z0-9+/]{100,}={0,2}              # minisign
      | eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?            # JSON web tokens
    )""",
    re.VERBOSE,
)
RANDOM = lazy_regex(
    r"(?<![\w/+-])(?=\w*\d)(?=\w*[a-z])(?:[0-9a-f]{32,}|(?=\w*[A-Z])[A-Za-z0-9]{32,})(?![\w/+-])"
)
"""A run of random letters and digits."""
_LONG_RUN = lazy_regex(r"[A-Za-z0-9_-][A-Za-z0-9_-]{14,}")
"""Keys begin with that, but for those that have one of these near their beginning."""
_RARE_MARK = lazy_regex(
    r":AA|8Q~|\.atlasv1\.|ya29\.|1//0|hv[bs]\.|SG\.|dp\.|dt0c01\.|sntry|sk\.|eyJ"
)
_BEFORE = {":AA": 10, "8Q~": 4, ".atlasv1.": 14}
"""At most this many letters of a key stand before it."""
_BEGIN = lazy_regex(r"-{4,5} ?begin |putty-user-key-file-")


def _blocks(_: str, low: str) -> Iterator[int]:
    return (match.start() for match in _BEGIN.finditer(low))


def _keys(text: str, _: str) -> Iterator[int]:
    last = -1
    for start in merge((match.start() for match in _LONG_RUN.finditer(text)), _odd(text)):
        if start != last:
            last = start
            yield start


def _odd(text: str) -> Iterator[int]:
    reached = 0
    for match in _RARE_MARK.finditer(text):
        first = max(match.start() - _BEFORE.get(match[0], 0), reached)
        yield from range(first, match.start() + 1)
        reached = match.start() + 1


BLOCKS = Rule(("begin ", "putty-user"), _BLOCK, _blocks)
KEYS = Rule((), _KEY, _keys)


# --- kinds of files -------------------------------------------------------------------------------

_PGPASS = lazy_regex(
    r"(?m)^((?:[\w.-]{1,100}|\*):(?:543\d|6432|\*):(?!\d+:)[^:\s]{1,63}:[^:\s]{1,63}:)[^\s:]{4,200}$"
)
_HASHED = lazy_regex(
    r"""(?x)
    (?:\$(?:1|apr1)\$[./\w]{1,8}\$[./\w]{22}
      | \$2[abxy]?\$\d\d\$[./\w]{53}
      | \$(?:5|6)\$(?:rounds=\d+\$)?[./\w]{1,16}\$[./\w]{43,86}
      | \$g?y\$[./\w]{3,8}\$[./\w]{1,86}\$[./\w]{43}
      | \$argon2(?:id|i|d)\$v=\d+\$[\w=,]+\$[\w+/]{8,}\$[\w+/]{16,}
    )(?![./\w])"""
)
_HASHES = ("$1$", "$apr1$", "$2", "$5$", "$6$", "$y$", "$gy$", "$argon2")
_VAULT = lazy_regex(r"(?m)^([ \t]*\$ANSIBLE_VAULT;[^\n]{1,80}\n)(?:[ \t]*[0-9a-f]{8,80}(?:\n|\Z))+")
_OF_KUBERNETES = lazy_regex(
    r"(?m)^([ \t]*)(?:data|stringData):[ \t]*(?:\n\1[ \t]+[^\n]*)+"
    r'|"(?:data|stringData)"\s*:\s*\{[^{}]*\}'
)
_IS_SECRET = lazy_regex(r"""(?m)^\s*kind: ["']?Secret["']?[ \t]*$|"kind": ?"Secret\"""")
_MANIFESTS = (
    "kind: secret", 'kind: "secret"', "kind: 'secret'", '"kind": "secret"', '"kind":"secret"',
)  # fmt: skip
_VALUE = lazy_regex(
    r"""(?m)^[ \t]+(?:[\w.-]+:[ \t]+(?![|>]))?["']?([^\s:"']{2,})["']?[ \t]*$|:\s*"([^"\n]{2,})\""""
)
_NEXT_DOCUMENT = "\n---"
_NEARBY = 5000
"""Letters before and after something that say what it belongs to."""
_LONGEST_LINE = 300
_LOGIN_OF_REGISTRY = lazy_regex(r'("auth"\s*:\s*")(?=[A-Za-z+/]*\d)[A-Za-z0-9+/]{16,}={0,2}(?=")')
_MADE_BY_TERRAFORM = lazy_regex(
    r'(?s)("random_password"(?:(?!"type").){0,3000}?"result"\s*:\s*")[^"\n]{4,200}(?=")'
)
_OF_JWK = lazy_regex(r'("(?:d|p|q|dp|dq|qi|k)"\s*:\s*")[\w-]{20,}(?=")')
_SHARED_WITH_WIFI = lazy_regex(r'(?i)\b(psk\s*=\s*")[^"\n]{8,63}(?=")')
_COOKIES = lazy_regex(r"(?i)\bcookie:[^\n]{8,}")
_COOKIE = lazy_regex(
    r"(?i)(?:cookie:|;)\s*(?!path|domain|expires|max-age)[\w.-]{1,60}=([\w.%+/=-]{20,})"
)
_COMMANDS = (
    "docker", "podman", "helm", "nerdctl", "skopeo", "redis-cli", "mongo", "convertto", "echo",
)  # fmt: skip
_COMMAND = lazy_regex(
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
    """Return a function that yields where the lines begin that have some words."""
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
    """Yield where the data of manifests may begin: at a line, or at a key in quotes."""
    in_quotes = at('"data"', '"stringdata"')
    lines = _lines_with("data:", "stringdata:")
    return iter(sorted({*in_quotes(text, low), *lines(text, low)}))


def _is_of_secret(match: re.Match[str]) -> bool:
    """Return whether the manifest that data is of is one of a secret."""
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
    """Return whether the object that it is in says what kind of key it is."""
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
