"""Pictures become what they say about themselves and the text that can be seen in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.errors import UnreadableSource
from memctl.files import open_regular
from memctl.readers.damage import told_as_damage, without_warnings
from memctl.readers.exif import Properties, properties_of
from memctl.readers.names import date_from_name, shown_name, title_from_name
from memctl.readers.ocr import find_ocr
from memctl.readers.pieces import Piece, assemble
from memctl.records import Metadata, SourceText

if TYPE_CHECKING:
    from PIL.Image import Image

READER = "image/1"
FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "TIFF")
"""Others stay shut: Pillow hands some of them to programs of their own."""

MOST_PIXELS = 100_000_000
"""More are not decoded: a few kilobytes can claim to be gigabytes."""

TIFF_PAGES = 50
ANIMATION_FRAMES = 5
IMAGE_TEXT = "image text"

_READ_AT = (4000, 4000)


def read(path: Path, name: str) -> Iterator[SourceText]:
    """Yield one document: where the picture is from, its description, the text seen in it.

    A picture with text of which no more is known is its text alone: its name is its title.

    Raises:
        UnreadableSource: It is damaged, or has too many pixels to decode.
    """
    with without_warnings():
        source = _read(path, name)
    yield source


def _read(path: Path, name: str) -> SourceText:
    from PIL import Image
    from PIL import UnidentifiedImageError as Unidentified

    with (
        open_regular(path) as file,
        told_as_damage(name, "an image", Unidentified, Image.DecompressionBombError),
        Image.open(file, formats=FORMATS) as image,
    ):
        found = properties_of(image)
        size, kind = image.size, image.format or ""
        pages = list(_page_texts(image, name))
    missing = (IMAGE_TEXT,) if any(text is None for _, text in pages) else ()
    pieces = _pieces(name, size, found, pages)
    head = _head(name, kind, found, _metadata(size, kind, found), missing)
    return next(assemble(head, pieces))


def pages_of(path: Path, name: str, most: int) -> Iterator[tuple[int | None, Image]]:
    """Yield what there is to see, upright: numbered pages of a TIFF, else one picture.

    Args:
        path: Where it is.
        name: What it is called.
        most: So many pages at most.

    Raises:
        UnreadableSource: It is damaged, or has too many pixels to decode.
    """
    from PIL import Image
    from PIL import UnidentifiedImageError as Unidentified

    with (
        open_regular(path) as file,
        without_warnings(),
        told_as_damage(name, "an image", Unidentified, Image.DecompressionBombError),
        Image.open(file, formats=FORMATS) as image,
    ):
        is_paged = image.format == "TIFF" and _frame_count(image) > 1
        for number in _frames(image)[: most if is_paged else 1]:
            image.seek(number)
            _decode(image, name, "RGB")
            yield number + 1 if is_paged else None, _upright(image)


def _page_texts(image: Image, name: str) -> Iterator[tuple[int | None, str | None]]:
    """The number of each page and its text; None for a text that could not be read."""
    ocr = find_ocr()
    seen: set[str] = set()
    many = _frame_count(image) > 1
    for number in _frames(image):
        image.seek(number)
        _decode(image, name)
        text = ocr.read(_upright(image)) if ocr else None
        page = number + 1 if many and image.format == "TIFF" else None
        if text is None or text not in seen:
            yield page, text
        seen.add(text or "")


def _frame_count(image: Image) -> int:
    return int(getattr(image, "n_frames", 1))


def _frames(image: Image) -> list[int]:
    """Every page of a TIFF up to a number, a few frames of an animation, one of all else."""
    count = _frame_count(image)
    if image.format == "TIFF":
        return list(range(min(count, TIFF_PAGES)))
    if image.format == "MPO":
        return [0]
    step = max(1, -(-count // ANIMATION_FRAMES))
    return list(range(0, count, step))


def _decode(image: Image, name: str, mode: str = "L") -> None:
    """Decode the frame, a large photograph at a part of its size."""
    image.draft(mode, _READ_AT)
    if image.width * image.height > MOST_PIXELS:
        raise UnreadableSource(
            f"{shown_name(name)} has {image.width:,} × {image.height:,} pixels, too many to read",
            "save it smaller and try again",
        )
    image.load()


def _upright(image: Image) -> Image:
    from PIL import ImageOps

    return ImageOps.exif_transpose(image) or image


def _pieces(
    name: str,
    size: tuple[int, int],
    found: Properties,
    pages: list[tuple[int | None, str | None]],
) -> Iterator[Piece]:
    if found.says_where_it_is_from or not any(text for _, text in pages):
        yield Piece(_summary(name, size, found) + "\n\n", "properties")
    if found.description:
        yield Piece(found.description + "\n\n", "caption")
    for page, text in pages:
        if text:
            yield Piece(text + "\n\n", page=page)


def _summary(name: str, size: tuple[int, int], found: Properties) -> str:
    """One sentence: ``Photo "market", taken 2026-05-01 10:22 at 52.1, 4.9 with Canon, 40×30.``"""
    words = ["Photo" if found.camera else "Image", f"“{found.title or title_from_name(name)}”"]
    if found.taken_at:
        words.append(f"taken {found.taken_at:%Y-%m-%d %H:%M}")
    if found.latitude is not None and found.longitude is not None:
        words.append(f"at {found.latitude}, {found.longitude}")
    if found.camera:
        words.append(f"with {found.camera}")
    if found.artist:
        words.append(f"by {found.artist}")
    return f"{' '.join(words)}, {size[0]}×{size[1]} pixels."


def _metadata(size: tuple[int, int], kind: str, found: Properties) -> Metadata:
    facts: dict[str, object] = {"width": size[0], "height": size[1], "format": kind}
    told = asdict(found) | {
        "taken_at": found.taken_at.isoformat() if found.taken_at else None,
        "keywords": list(found.keywords),
    }
    return facts | {key: value for key, value in told.items() if value}


def _head(
    name: str, kind: str, found: Properties, metadata: Metadata, missing: tuple[str, ...]
) -> SourceText:
    return SourceText(
        text="",
        media_type=f"image/{'jpeg' if kind == 'MPO' else kind.lower()}",
        reader=READER,
        title=found.title or title_from_name(name),
        authors=(found.artist,) if found.artist else (),
        created_at=found.taken_at or date_from_name(name),
        tags=found.keywords,
        metadata=metadata,
        missing=missing,
    )
