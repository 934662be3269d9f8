"""What the program logs besides errors, on standard error: text to people, JSON to programs."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from memctl.cli.rendering.terminal_text import json_text, one_line

if TYPE_CHECKING:
    from memctl.config import LogSettings


def configure_logging(settings: LogSettings) -> None:
    """Send the program's own log, not that of libraries, to standard error."""
    is_text = settings.format == "text" or (settings.format == "auto" and sys.stderr.isatty())
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Text() if is_text else _Json())
    log = logging.getLogger("memctl")
    log.handlers = [handler]
    log.setLevel(settings.level.upper())
    log.propagate = False


class _Text(logging.Formatter):
    """One line, with the traceback below it where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text."""
        line = f"{record.levelname.lower()}: {one_line(record.getMessage())}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class _Json(logging.Formatter):
    """One JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        entry = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json_text(entry)
