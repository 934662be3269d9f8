"""Secrets that are said: ``the password is ...``, a PIN, codes for an emergency, words of a wallet.

Only what no ordinary word or number looks like is taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memctl.patterns import lazy_regex
from memctl.redaction.secret_rule import Rule, at, at_word_before, has_digit, secret_text

_PASSWORDS = r"pass(?:word|code|phrase|wort)s?|passwd|pwd|pw|kennwort|mot\ de\ passe|contrase[ñn]a"
_KEYS = (
    r"(?:client|shared|api|app)[ ]secret|(?:access|api|auth|bot|refresh|session)[ ]token"
    r"|(?:access|api|secret|licen[cs]e)[ ]key"
)
_QUOTED_OR_NOT = r"""
    (?: (?<=["]) [^"\n]{4,80} (?=")
      | (?<=') [^'\n]{4,80} (?=')
      | (?<=`) [^`\n]{4,80} (?=`)
      | (?<=“) [^”\n]{4,80} (?=”)
      | [^\s"'`“”]{3,200} [^\s"'`“”.,;:!?)\]]
    )"""
_SPOKEN = lazy_regex(
    rf"""(?ix)
    (
        \b(?:(?P<key>{_KEYS})|{_PASSWORDS})
        (?:[ ](?:for|to|of|on|at|für|zum|zur|von|pour|du|de|del|para)[ ][^\n.:;!?,"“]{{1,40}}?)?
        (?:[ ](?:is|was|are|ist|lautet|est|es)(?:[ ](?:now|still|jetzt))?:?|:)
        [ ]["'`“]?
    )
    {_QUOTED_OR_NOT}"""
)
_CHANGED = lazy_regex(
    rf"""(?ix)
    (
        \b(?:changed?|changing|reset|set|updated?)[ ][^\n.:;]{{0,40}}?
        \bpass(?:word|code|phrase)[ ]to[ ]["'`“]?
    )
    {_QUOTED_OR_NOT}"""
)
_ORDINARY_WORD = lazy_regex(
    r"""(?ix)
    ^(?:
        \d+[-–]?[a-z]+ | (?-i:[A-Z]+)[-–]?\d{1,5}      # 8-character, 2nd; SHA-256, ISO27001
      | (?:sha|md|base|utf|aes|rsa|oauth|argon|pbkdf)[-_]?\d.*
      | .*(?:://|/.*/).* | [$<{%\[].*                 # an address, a path, a placeholder
      | [\w.]+\(.*                                    # a call
      | \w+(?:\.\w+)*\.[a-z]{2,4}\d?                  # the name of a file
      | [\d.:/-]*                                     # a date, a time, a version
    )$"""
)
_MIXED = lazy_regex(r"(?=.*\d)(?=.*[^\W\d_]).{6,}|.*[^\W\d_][$!#%^*@+=][\w$!#%^*@+=]*.{3,}")
_AFTER_NUMBER = (
    r"(?![\w-]|[.,:]\d|[ ](?!(?:and|or|from|for|on|at|until|since|please|but|to|und|et|y)\b)\w)"
)
"""What is said after it; what is counted would be named there."""
_PIN = lazy_regex(
    r"""(?x)
    (
        \b(?:PIN|Pin|pin)(?P<code>[ -]?[Cc]ode)?(?:[ ](?:of|for|für|der|des)[ ][^\n.:;,\d]{1,30}?)?
        (?:(?P<colon>[ ]?:)|[ ](?:is|ist|lautet|est|es):?)[ ]
    )
    \d{4,8}"""
    + _AFTER_NUMBER
)
_CODE_PLACES = (
    "door",
    "gate",
    "alarm",
    "safe",
    "unlock",
    "verification",
    "one-time",
    "login",
    "2fa",
)
_CODE = lazy_regex(
    rf"""(?ix)
    (
        \b(?:{"|".join(_CODE_PLACES)})[ ](?:code|password|passcode)
        (?:[ ](?:of|for|to)[ ][^\n.:;,\d]{{1,30}}?)?(?:[ ]is:?|:)[ ]
    )
    \d{{4,8}}"""
    + _AFTER_NUMBER
)
_ITEM = r"(?=[A-Za-z-]*\d)[A-Za-z0-9]{4,12}(?:-[A-Za-z0-9]{4,12}){0,3}(?![\w.-]*\w)"
_BACKUP = lazy_regex(
    rf"""(?ix)
    (
        \b(?:backup|recovery|rescue|emergency)[ -](?:access[ ]|login[ ])?codes?\b
        [^\n\d]{{0,60}}[:\n]\s*(?:(?:[-*•]|\d{{1,2}}[.)])[ ]*)?
    )
    {_ITEM}(?:[\s,;|]+(?:(?:[-*•]|\d{{1,2}}[.)])[ ]*)?{_ITEM}){{2,}}"""
)
_STEP = r"[\s,]+(?:\d{1,2}[.)][ ]?)?"
_NOT_IN_PHRASES = (
    r"(?!(?:the|and|are|was|for|with|from|not|but|his|her|your|they|were|been|which|would|their|has"
    r"|its|our|into|than|then|when|where)\b)"
)
_WORD = rf"{_NOT_IN_PHRASES}[a-z]{{3,12}}\b"
_WALLET_WORD = rf"{_NOT_IN_PHRASES}[a-z]{{3,8}}\b"
_WALLET = lazy_regex(
    rf"""(?x)
    (
        (?i:\b(?:(?:seed|recovery|backup|wallet|secret|mnemonic)[ ]){{0,2}}
        (?:seed|mnemonic|phrase|words))(?:[ ](?i:is|are))?[ ]?[:=\n]\s{{0,3}}
        ["'“]?(?:\d{{1,2}}[.)][ ]?)?
    )
    {_WALLET_WORD}(?:{_STEP}{_WALLET_WORD}){{11,23}}(?!{_STEP}[a-z])"""
)
_PASSPHRASE = lazy_regex(
    rf"""(?x)
    ((?i:\bpassphrase)(?:[ ]is)?:?[ ])
    {_WORD}(?:[ -]{_WORD}){{3,7}}(?=[.]?[ \t]*(?:\n|\Z))"""
)
_WALLET_WORDS = frozenset({12, 15, 18, 21, 24})
_SETUP = lazy_regex(
    r"""(?ix)
    (
        \b(?:2fa|[th]?otp|mfa|two-factor|authenticator)[ ](?:setup[ ]|secret[ ])?
        (?:key|secret|seed)(?:[ ]is)?:?[ ]
    )
    (?:[A-Z2-7]{4}[ -]?){3,15}[A-Z2-7]{4}(?!\w)"""
)
_WIFI = lazy_regex(r"(?i)\b(WIFI:(?:[TSH]:[^;\n]{0,64};){0,3}P:)[^;\n]{4,64}(?=;)")


def _is_spoken_secret(match: re.Match[str]) -> bool:
    """Return whether a password given in a sentence is no ordinary word, date or name."""
    value = secret_text(match)
    if match[1][-1] in "\"'`“" and " " in value:
        return bool(re.search(r"\d", value))
    if _ORDINARY_WORD.match(value):
        return value.isdigit() and len(value) >= 6
    if match.re is _SPOKEN and match["key"]:
        return bool(re.fullmatch(r"(?=.*\d)(?=.*[^\W\d_])\S{12,}", value))
    return bool(_MIXED.fullmatch(value)) and len(value) >= 6


def _is_pin(match: re.Match[str]) -> bool:
    """Return whether it is not an Indian postal code, which is also called a PIN and has six
    digits."""
    is_postal = match["code"] or match["colon"]
    return not (is_postal and match.end() - match.end(1) == 6)


def _is_wallet(match: re.Match[str]) -> bool:
    return len(re.findall(r"[a-z]{3,8}", secret_text(match))) in _WALLET_WORDS


def _label_starts(text: str, low: str) -> Iterator[int]:
    """Yield where a word for a password or a key may begin."""
    of_keys = at_word_before(" secret", " token", " key")
    places = {*at("pass", "pw", "kennwort", "mot de", "contrase")(text, low), *of_keys(text, low)}
    return iter(sorted(places))


_CHANGES = ("password to ", "passcode to ", "passphrase to ")
_TRIGGERS = ("pass", "pw", "kennwort", "contrase", "secret", "token", "key")
SPOKEN = (
    Rule(
        _TRIGGERS,
        _SPOKEN,
        _label_starts,
        _is_spoken_secret,
    ),
    Rule(_CHANGES, _CHANGED, at("chang", "reset", "set", "update"), _is_spoken_secret),
    Rule(("passphrase",), _PASSPHRASE, at("passphrase")),
    Rule(("pin ", "pin:", "pin-"), _PIN, at("pin"), _is_pin),
    Rule((" code", " pass"), _CODE, at_word_before(" code", " pass")),
    Rule(("codes",), _BACKUP, at("backup", "recovery", "rescue", "emergency")),
    Rule(
        ("seed", "mnemonic", "phrase", "wallet words", "recovery words", "backup words"),
        _WALLET,
        at("seed", "recovery", "backup", "wallet", "secret", "mnemonic", "phrase", "words"),
        _is_wallet,
    ),
    Rule(
        ("2fa", "otp", "mfa", "two-factor", "authenticator"),
        _SETUP,
        at("2fa", "totp", "hotp", "otp", "mfa", "two-factor", "authenticator"),
        has_digit,
    ),
    Rule(("wifi:",), _WIFI, at("wifi:")),
)
