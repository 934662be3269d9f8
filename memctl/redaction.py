"""Text without what looks like a key, a token or a password.

Few patterns that seldom err: prefixes that providers give their keys, the shapes of tokens, and
what is assigned to a name such as ``password``.  What people just say is left as it is.
"""

from __future__ import annotations

import re

MARK = "[redacted]"

_BLOCK = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
_KEY = re.compile(
    r"""(?<![\w-])(?:
        sk-[\w-]{16,}                                   # OpenAI, Anthropic and others
      | (?:sk|rk|pk)_(?:live|test)_\w{16,}              # Stripe
      | gh[oprsu]_\w{20,} | github_pat_\w{20,}          # GitHub
      | glpat-[\w-]{16,}                                # GitLab
      | xox[abeoprs]-[\w-]{10,}                         # Slack
      | A(?:KIA|SIA)[A-Z0-9]{16}(?!\w)                  # AWS
      | AIza[\w-]{30,}                                  # Google
      | hf_[A-Za-z0-9]{20,}                             # Hugging Face
      | npm_[A-Za-z0-9]{30,} | pypi-[\w-]{40,}          # npm, PyPI
      | eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?            # JSON web tokens
    )""",
    re.VERBOSE,
)
_RANDOM = re.compile(
    r"(?<![\w/+-])(?=\w*\d)(?=\w*[a-z])(?:[0-9a-f]{32,}|(?=\w*[A-Z])[A-Za-z0-9]{32,})(?![\w/+-])"
)
_BEARER = re.compile(r"(?i)\b((?:bearer|basic)\s+)(?=\S*\d)[\w.~+/=-]{12,}")
_ASSIGNED = re.compile(
    r"(?i)\b((?:[\w-]{0,40}(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key))"
    r"[\"']?\s*[=:]\s*[\"']?)(?!\[redacted\])[^\s\"',;]{4,}"
)
_IN_URL = re.compile(r"(\b[a-z][a-z0-9+.-]{0,20}://[^\s:/@]{0,100}:)[^\s/@]{1,200}(?=@)")


def redacted(text: str) -> str:
    """Return ``text`` with ``[redacted]`` in place of what looks like a secret."""
    for pattern in (_BLOCK, _KEY, _RANDOM):
        text = pattern.sub(MARK, text)
    for pattern in (_BEARER, _ASSIGNED, _IN_URL):
        text = pattern.sub(rf"\g<1>{MARK}", text)
    return text
