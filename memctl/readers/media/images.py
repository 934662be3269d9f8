"""Pictures become what they say about themselves and the text that can be seen in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict

from memctl.errors import UnreadableSource
from memctl.files import open_regular
from memctl.readers.document_properties import parse_date
from memctl.readers.file_names import clean_title, display_name, title_from_name
from memctl.readers.media.image_ocr import find_ocr
from memctl.readers.pieces import Piece, assemble, named_document, storable_text
from memctl.readers.reader_errors import PARSER_ERRORS, damage_as_unreadable, without_warnings
from memctl.records import Metadata, SourceText

if TYPE_CHECKING:
    from PIL.Image import Exif, Image


FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "TIFF")
"""Others stay shut: Pillow hands some of them to programs of their own."""

MAX_PIXELS = 100_000_000
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
    with _open_image(path, name) as image:
        found = image_properties(image)
        size, kind = image.size, image.format or ""
        pages = list(_page_texts(image, name))
    missing = (IMAGE_TEXT,) if any(text is None for _, text in pages) else ()
    head = named_document(
        name,
        title=found.title,
        authors=(found.artist,) if found.artist else (),
        created_at=found.taken_at,
        tags=found.keywords,
        metadata=_metadata(size, kind, found),
        missing=missing,
    )
    yield from assemble(head, _pieces(name, size, found, pages))


@contextmanager
def _open_image(path: Path, name: str) -> Iterator[Image]:
    from PIL import Image
    from PIL import UnidentifiedImageError as Unidentified

    with (
        open_regular(path) as file,
        without_warnings(),
        damage_as_unreadable(name, "an image", Unidentified, Image.DecompressionBombError),
        Image.open(file, formats=FORMATS) as image,
    ):
        yield image


def image_pages(path: Path, name: str, limit: int) -> Iterator[tuple[int | None, Image]]:
    """Yield what there is to see, upright: numbered pages of a TIFF, else one picture.

    Args:
        path: Where it is.
        name: What it is called.
        limit: The largest number of pages.

    Raises:
        UnreadableSource: It is damaged, or has too many pixels to decode.
    """
    with _open_image(path, name) as image:
        is_paged = image.format == "TIFF" and _frame_count(image) > 1
        for number in _frames(image)[: limit if is_paged else 1]:
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
    if image.width * image.height > MAX_PIXELS:
        raise UnreadableSource(
            f"{display_name(name)} has {image.width:,} × {image.height:,} pixels, too many to read",
            "save it smaller and try again",
        )
    image.load()


def _upright(image: Image) -> Image:
    from PIL import ImageOps

    return ImageOps.exif_transpose(image) or image


def _pieces(
    name: str,
    size: tuple[int, int],
    properties: ImageProperties,
    pages: list[tuple[int | None, str | None]],
) -> Iterator[Piece]:
    if properties.says_where_it_is_from or not any(text for _, text in pages):
        yield Piece(_summary(name, size, properties) + "\n\n", "properties")
    if properties.description:
        yield Piece(properties.description + "\n\n", "caption")
    for page, text in pages:
        if text:
            yield Piece(text + "\n\n", page=page)


def _summary(name: str, size: tuple[int, int], properties: ImageProperties) -> str:
    """One sentence: ``Photo "market", taken 2026-05-01 10:22 at 52.1, 4.9 with Canon, 40×30.``"""
    words = [
        "Photo" if properties.camera else "Image",
        f"“{properties.title or title_from_name(name)}”",
    ]
    if properties.taken_at:
        words.append(f"taken {properties.taken_at:%Y-%m-%d %H:%M}")
    if properties.latitude is not None and properties.longitude is not None:
        words.append(f"at {properties.latitude}, {properties.longitude}")
    if properties.camera:
        words.append(f"with {properties.camera}")
    if properties.artist:
        words.append(f"by {properties.artist}")
    return f"{' '.join(words)}, {size[0]}×{size[1]} pixels."


_SUMMARY = re.compile(r"\s*(?:Photo|Image) “.*”.*, \d+×\d+ pixels\.\s*")


def is_summary_alone(text: str) -> bool:
    """Return whether a picture's text says nothing of what can be seen in it."""
    return _SUMMARY.fullmatch(text) is not None


def _metadata(size: tuple[int, int], kind: str, found: ImageProperties) -> Metadata:
    facts: dict[str, object] = {"width": size[0], "height": size[1], "format": kind}
    properties = asdict(found) | {
        "taken_at": found.taken_at.isoformat() if found.taken_at else None,
        "keywords": list(found.keywords),
    }
    return facts | {key: value for key, value in properties.items() if value}


MAX_LENGTH = 5_000
"""A description longer than this many characters is cut."""

_MAKE, _MODEL, _DATE, _ARTIST, _DESCRIPTION = 271, 272, 306, 315, 270
_XP_TITLE, _XP_COMMENT, _XP_AUTHOR, _XP_KEYWORDS, _XP_SUBJECT = range(40091, 40096)
_TAKEN, _DIGITISED, _TAKEN_OFFSET, _USER_COMMENT = 36867, 36868, 36881, 37510
_LATITUDE_REF, _LATITUDE, _LONGITUDE_REF, _LONGITUDE = 1, 2, 3, 4
_CHARSETS = {b"ASCII\0\0\0": "ascii", b"UNICODE\0": "utf-16", b"\0\0\0\0\0\0\0\0": "utf-8"}
_EXIF_DATE = re.compile(r"(\d{4})[:/-](\d\d)[:/-](\d\d)[ T](\d\d:\d\d(?::\d\d)?)")
_CAMERA_TEXT = re.compile(
    r"olympus digital camera|sony dsc|minolta|kodak|dcim[\\/]|digital camera$|^default$"
    r"|^(img|dsc|screenshot)[\w .-]*$",
    re.IGNORECASE,
)
"""Descriptions that cameras and phones write by themselves."""


class ImageProperties(Struct, frozen=True):
    """What a picture says about itself; empty where it says nothing."""

    title: str = ""
    description: str = ""
    artist: str = ""
    camera: str = ""
    keywords: tuple[str, ...] = ()
    taken_at: datetime | None = None
    latitude: float | None = None
    longitude: float | None = None

    @property
    def says_where_it_is_from(self) -> bool:
        """Whether a person or a camera has left a trace in it."""
        return bool(self.taken_at or self.camera or self.artist or self.latitude)


def image_properties(image: Image) -> ImageProperties:
    """Read what is there; tags that cannot be read are as if they were not there."""
    with suppress(*PARSER_ERRORS):
        return _from_exif(image.getexif(), _text_chunks(image))
    return ImageProperties()


def _text_chunks(image: Image) -> Mapping[str, Any]:
    """PNG text by its keyword in lower case; a comment in GIF and JPEG goes by the same name."""
    return {str(key).lower(): value for key, value in image.info.items()}


def _from_exif(exif: Exif, chunks: Mapping[str, Any]) -> ImageProperties:
    from PIL.ExifTags import IFD

    taken, place = exif.get_ifd(IFD.Exif), exif.get_ifd(IFD.GPSInfo)
    keywords = _text(exif.get(_XP_KEYWORDS)) or _text(chunks.get("keywords"))
    descriptions = (
        exif.get(_DESCRIPTION),
        exif.get(_XP_COMMENT),
        exif.get(_XP_SUBJECT),
        _decode_comment(taken.get(_USER_COMMENT)),
        chunks.get("description"),
        chunks.get("comment"),
    )
    return ImageProperties(
        title=clean_title(_text(exif.get(_XP_TITLE)) or _text(chunks.get("title"))),
        description=_join(descriptions),
        artist=clean_title(_first(exif.get(_ARTIST), exif.get(_XP_AUTHOR), chunks.get("author"))),
        camera=_camera(_text(exif.get(_MAKE)), _text(exif.get(_MODEL))),
        keywords=tuple(filter(None, (clean_title(k) for k in re.split(r"[;,]", keywords)))),
        taken_at=_capture_time(exif, taken, chunks),
        latitude=_degrees(place.get(_LATITUDE), place.get(_LATITUDE_REF), 90),
        longitude=_degrees(place.get(_LONGITUDE), place.get(_LONGITUDE_REF), 180),
    )


def _text(value: object) -> str:
    """A tag's value as text; Windows writes its own tags in UTF-16."""
    if isinstance(value, tuple):
        value = bytes(part for part in value if isinstance(part, int) and 0 <= part < 256)
    if isinstance(value, bytes):
        wide = value[1:2] == b"\0" or value.endswith(b"\0\0")
        value = value.decode("utf-16-le" if wide else "utf-8", "replace")
    text = value if isinstance(value, str) else ""
    return storable_text(text.replace("\0", "")).strip()[:MAX_LENGTH]


def _decode_comment(value: object) -> str:
    """A user comment, whose first eight bytes name its encoding."""
    if not isinstance(value, bytes):
        return _text(value)
    encoding = _CHARSETS.get(value[:8])
    return _text(value[8:].decode(encoding, "replace")) if encoding else ""


def _first(*values: object) -> str:
    return next((text for value in values if (text := _text(value))), "")


def _join(values: tuple[object, ...]) -> str:
    """The different descriptions, without those that no person wrote."""
    texts = dict.fromkeys(filter(None, map(_text, values)))
    return "\n".join(text for text in texts if not _CAMERA_TEXT.search(text))


def _camera(make: str, model: str) -> str:
    """Make and model, the make once: most models begin with it."""
    brand = make.split(" ")[0]
    together = model if model.lower().startswith(brand.lower()) else f"{make} {model}"
    return clean_title(together)


def _capture_time(
    exif: Exif, taken: Mapping[int, Any], chunks: Mapping[str, Any]
) -> datetime | None:
    """When it was taken, by the camera's clock; as UTC where the camera names no zone."""
    written = _first(taken.get(_TAKEN), taken.get(_DIGITISED), exif.get(_DATE))
    if match := _EXIF_DATE.match(written):
        zone = _text(taken.get(_TAKEN_OFFSET))
        year, month, day, clock = match.groups()
        moment = f"{year}-{month}-{day}T{clock}"
        return parse_date(moment + zone) or parse_date(moment)
    return parse_date(_text(chunks.get("creation time")))


def _degrees(parts: object, side: object, most: int) -> float | None:
    """Degrees, minutes and seconds as one signed number; None where they are not a place."""
    if not isinstance(parts, tuple) or len(parts) != 3:
        return None
    degrees, minutes, seconds = (float(part) for part in parts)
    number = degrees + minutes / 60 + seconds / 3600
    if not 0 < number <= most:
        return None
    return round(-number if _text(side).upper() in ("S", "W") else number, 6)
