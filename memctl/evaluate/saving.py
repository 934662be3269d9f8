"""A run of a question set as a file: the scores of each question, and neither text nor hits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from memctl import __version__
from memctl.errors import UsageError
from memctl.evaluate.scores import METRICS, Outcome
from memctl.files import save_file
from memctl.paths import shown

_FORMAT = "memctl-eval"
_VERSION = 1

Run = Mapping[str, Sequence[Outcome]]
"""What came of each question, by mode."""


def save_run(path: Path, run: Run, now: datetime) -> None:
    """Write a run in one step.

    Raises:
        OSError: It cannot be written there.
    """
    value = {
        "format": _FORMAT,
        "version": _VERSION,
        "memctl": __version__,
        "made_at": now.isoformat(),
        "modes": {mode: [asdict(outcome) for outcome in found] for mode, found in run.items()},
    }
    save_file(path, json.dumps(value, ensure_ascii=False, indent=1).encode())


def load_run(path: Path) -> Run:
    """Read a run that was saved.

    Raises:
        UsageError: It is no such file.
        OSError: It cannot be read.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        if value["format"] != _FORMAT or value["version"] != _VERSION:
            raise ValueError("another format")
        return {mode: [_outcome(item) for item in found] for mode, found in value["modes"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{shown(path)} is no saved run", "give what memctl eval --save FILE wrote"
        ) from error


def _outcome(item: Any) -> Outcome:
    scores = {metric: float(item["scores"][metric]) for metric in METRICS}
    return Outcome(str(item["id"]), str(item["category"]), scores, float(item["seconds"]))
