"""Work done ahead of its use, in a thread: stages of a pipeline overlap."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from queue import Empty, Full, Queue
from typing import TypeVar

T = TypeVar("T")

_PATIENCE_SECONDS = 0.1
_MEANWHILE_SECONDS = 0.5


class _End:
    """What the worker puts last: nothing more comes, and why if it was an error."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def ahead(
    items: Generator[T, None, None], depth: int, meanwhile: Callable[[], None]
) -> Generator[T, None, None]:
    """Give what ``items`` gives, worked out by a thread up to ``depth`` items in advance.

    While the caller waits for an item, ``meanwhile`` is called now and then, in its thread.
    An error in ``items`` is raised here.  Closing this generator stops the thread, closes
    ``items`` in it and waits for that.
    """
    queue: Queue[T | _End] = Queue(maxsize=depth)
    stop = threading.Event()
    thread = threading.Thread(target=_work, args=(items, queue, stop), daemon=True)
    thread.start()
    try:
        yield from _received(queue, meanwhile)
    finally:
        stop.set()
        thread.join()


def _received(queue: Queue[T | _End], meanwhile: Callable[[], None]) -> Iterator[T]:
    while True:
        try:
            item = queue.get(timeout=_MEANWHILE_SECONDS)
        except Empty:
            meanwhile()
            continue
        if isinstance(item, _End):
            if item.error is not None:
                raise item.error
            return
        yield item


def _work(items: Generator[T, None, None], queue: Queue[T | _End], stop: threading.Event) -> None:
    end = _End()
    try:
        for item in items:
            if not _put(queue, item, stop):
                return
    except BaseException as error:  # noqa: BLE001 - a thread ends here; its error goes on
        end = _End(error)
    finally:
        items.close()
    _put(queue, end, stop)


def _put(queue: Queue[T | _End], item: T | _End, stop: threading.Event) -> bool:
    """Put an item as soon as there is room; False when nobody wants it any more."""
    while not stop.is_set():
        try:
            queue.put(item, timeout=_PATIENCE_SECONDS)
        except Full:
            continue
        return True
    return False
