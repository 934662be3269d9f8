"""A progress bar for work that takes longer than a moment, on a terminal only."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from memctl.cli.rendering.terminal_text import one_line

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import ProgressColumn, TaskID

    from memctl.records import Progress, ProgressListener

_SHOWN_AFTER = 0.4


@contextmanager
def progress_bar(title: str, *, quiet: bool) -> Iterator[ProgressListener | None]:
    """Give a listener that draws a bar on standard error, or None if none is to be drawn."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    listener = _Listener(title)
    listener.start()
    try:
        yield listener
    finally:
        listener.stop()


class _Listener:
    """Starts drawing once the work has lasted a moment, so that short work does not flicker.

    A timer starts it, because the work may report no progress for a long time.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._last: Progress | None = None
        self._is_over = False
        self._mutex = threading.Lock()
        self._timer = threading.Timer(_SHOWN_AFTER, self._show)
        self._timer.daemon = True

    def __call__(self, progress: Progress) -> None:
        with self._mutex:
            self._last = progress
            self._update()

    def start(self) -> None:
        """Start the timer after which the bar is drawn."""
        self._timer.start()

    def stop(self) -> None:
        """Remove the bar from the screen."""
        self._timer.cancel()
        with self._mutex:
            self._is_over = True
            if self._bar is not None:
                self._bar.stop()

    def _show(self) -> None:
        with self._mutex:
            if not self._is_over:
                self._bar = _bar()
                self._task = self._bar.add_task(self._title, total=None, unit="", note="")
                self._update()
                self._bar.start()

    def _update(self) -> None:
        if self._bar is not None and self._task is not None and self._last is not None:
            self._bar.update(
                self._task,
                completed=self._last.done,
                total=self._last.total,
                unit=self._last.unit,
                note=one_line(self._last.note, 40),
            )


def _bar() -> Bar:
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    from memctl.cli.rendering.output_formats import console

    columns: list[ProgressColumn] = [
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed:,.0f} {task.fields[unit]}", markup=False),
        _rate_column(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[note]}", style="dim", markup=False),
    ]
    return Bar(*columns, console=console(stderr=True), transient=True)


def _rate_column() -> ProgressColumn:
    from rich.progress import ProgressColumn, Task
    from rich.text import Text

    class Rate(ProgressColumn):
        """How much is done in a second."""

        def render(self, task: Task) -> Text:
            """Return the rate as text."""
            return Text(f"{task.speed:,.0f}/s" if task.speed else "")

    return Rate()
