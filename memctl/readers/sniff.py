"""Which text format a sample of text is in, where the extension is missing or says otherwise."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable

from memctl.readers.registry import MediaType, by_extension
from memctl.readers.separated import guess_dialect

SAMPLE_LINES = 60

_HTML = re.compile(r"<!doctype\s+html|<html[\s>]", re.I)
_HTML_TAG = re.compile(
    r"</?(?:html|head|body|div|p|table|span|h[1-6]|article|ul|li|a)\b[^<]*>", re.I
)
_XML = re.compile(r"<\?xml\s|<!DOCTYPE\s|<!--|<[A-Za-z_][\w:.-]*[\s/>]")
_HEADER = re.compile(r"([A-Za-z][A-Za-z-]*):(?:\s|$)")
_MAIL_HEADERS = frozenset(
    ("from", "to", "cc", "subject", "date", "message-id", "received", "mime-version",
     "return-path", "delivered-to", "reply-to", "content-type", "in-reply-to", "sender")
)  # fmt: skip
_SRT = re.compile(r"\d+\n\d{1,2}:\d\d:\d\d[,.]\d{3} --> \d{1,2}:\d\d:\d\d[,.]\d{3}")
_MARKDOWN = re.compile(r"^(?:#{1,6} \S|```|\[\[.+\]\]|- \[[ x]\] |\*\*.+\*\*|> \S)", re.M)
_FRONT_MATTER = re.compile(r"---\n(?:[\w-]+:.*\n(?:[ \t-].*\n)*)+(?:---|\.\.\.)(?:\n|$)")
_YAML_KEY = re.compile(r"(?:[\w.-]+|\"[^\"\n]*\"):(?:\s|$)|- ")

_OPEN = ("text/plain", "text/x-log", "")
"""Types that say nothing of the format within: what is found inside goes first."""


def text_type(sample: str, name: str, complete: bool) -> MediaType:
    """The media type of text that begins with ``sample`` (all of it if ``complete``)."""
    extension = by_extension(name)
    claimed = extension.media_type if extension else ""
    text = sample.lstrip()
    checks: list[Callable[[], MediaType]] = [lambda: _unmistakable(text)]
    if claimed == "application/json":
        checks.append(lambda: _json_type(text, complete) or _markup_type(text) or claimed)
    elif claimed in _OPEN or not _is_text_type(claimed):
        checks += [
            lambda: _json_type(text, complete),
            lambda: _markup_type(text),
            lambda: _guessed(text, sample, claimed),
        ]
    found = next((media_type for check in checks if (media_type := check())), claimed)
    return found if _is_text_type(found) else "text/plain"


def _is_text_type(media_type: MediaType) -> bool:
    return media_type.startswith(("text/", "message/", "application/")) and not (
        media_type.startswith("application/vnd.") or media_type == "application/pdf"
    )


def _unmistakable(text: str) -> MediaType:
    """Formats whose first line nothing else begins with, whatever the extension claims."""
    if re.match(r"WEBVTT(?:[ \t\n]|$)", text):
        return "text/vtt"
    if _SRT.match(text):
        return "application/x-subrip"
    if _HTML.match(text):
        return "text/html"
    if text.startswith("<?xml"):
        return "text/html" if _HTML.search(text[:2000]) else "application/xml"
    return ""


def _json_type(text: str, complete: bool) -> MediaType:
    if not text.startswith(("{", "[")):
        return ""
    lines = [line for line in text.split("\n", SAMPLE_LINES)[:SAMPLE_LINES] if line.strip()]
    whole = lines if complete and len(lines) < SAMPLE_LINES else lines[:-1]
    if len(whole) >= 2 and all(_is_json_line(line) for line in whole[:-1]):
        return "application/x-ndjson"
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        cut_off = not complete and error.pos >= len(text) - 20
        unterminated = not complete and error.msg.startswith("Unterminated string")
        return "application/json" if cut_off or unterminated else ""
    except (ValueError, RecursionError):
        pass
    return "application/json"


def _is_json_line(line: str) -> bool:
    if not line.lstrip().startswith(("{", "[")):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _markup_type(text: str) -> MediaType:
    if not _XML.match(text):
        return ""
    tags = _HTML_TAG.findall(text[:20_000])
    if len(tags) >= 2 and _HTML_TAG.match(re.sub(r"<!--.*?-->\s*", "", text, flags=re.S)):
        return "text/html"
    return "application/xml" if re.match(r"<[A-Za-z_!]", text) and "</" in text else ""


def _guessed(text: str, sample: str, claimed: MediaType) -> MediaType:
    """Formats that only a look at many lines tells."""
    if _is_mail(sample):
        return "message/rfc822"
    if text.startswith("#!"):
        return "text/x-source"
    if claimed == "text/x-log":
        return claimed
    if dialect := guess_dialect(sample, strict=True):
        return "text/tab-separated-values" if dialect.delimiter == "\t" else "text/csv"
    if claimed:
        return claimed
    if _FRONT_MATTER.match(sample):
        return "text/markdown"
    if text.startswith(("---\n", "%YAML")) and _mostly_yaml(text):
        return "application/yaml"
    return "text/markdown" if _MARKDOWN.search(text) else ""


def _is_mail(sample: str) -> bool:
    """Whether the sample begins with a block of message headers, then a blank line."""
    names: Counter[str] = Counter()
    lines = sample.split("\n")
    for number, line in enumerate(lines):
        if not line.strip():
            break
        if line.startswith((" ", "\t")) or (number == 0 and line.startswith("From ")):
            continue
        match = _HEADER.match(line)
        if match is None:
            return False
        names[match[1].lower()] += 1
    known = _MAIL_HEADERS & names.keys()
    return len(known) >= 3 and "from" in known and bool(known & {"subject", "date"})


def _mostly_yaml(text: str) -> bool:
    lines = [line.strip() for line in text.split("\n")[1:SAMPLE_LINES]]
    lines = [line for line in lines if line and not line.startswith("#")]
    return bool(lines) and sum(bool(_YAML_KEY.match(line)) for line in lines) >= 0.7 * len(lines)
