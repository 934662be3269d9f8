"""What a picture says about itself: when, where and with what it was taken, titles, descriptions.

Knows the tags of EXIF and of PNG text, and nothing of pixels.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memctl.readers.damage import DAMAGE
from memctl.readers.dates import parse_date
from memctl.readers.names import clean_title
from memctl.readers.pieces import storable

if TYPE_CHECKING:
    from PIL.Image import Exif, Image

LONGEST = 5_000
"""A description longer than this many characters is cut."""

_MAKE, _MODEL, _DATE, _ARTIST, _DESCRIPTION = 271, 272, 306, 315, 270
_XP_TITLE, _XP_COMMENT, _XP_AUTHOR, _XP_KEYWORDS, _XP_SUBJECT = range(40091, 40096)
_TAKEN, _DIGITISED, _TAKEN_OFFSET, _USER_COMMENT = 36867, 36868, 36881, 37510
_LATITUDE_REF, _LATITUDE, _LONGITUDE_REF, _LONGITUDE = 1, 2, 3, 4
_CHARSETS = {b"ASCII\0\0\0": "ascii", b"UNICODE\0": "utf-16", b"\0\0\0\0\0\0\0\0": "utf-8"}
_EXIF_DATE = re.compile(r"(\d{4})[:/-](\d\d)[:/-](\d\d)[ T](\d\d:\d\d(?::\d\d)?)")
_BY_CAMERA = re.compile(
    r"olympus digital camera|sony dsc|minolta|kodak|dcim[\\/]|digital camera$|^default$"
    r"|^(img|dsc|screenshot)[\w .-]*$",
    re.IGNORECASE,
)
"""Descriptions that cameras and phones write by themselves."""


@dataclass(frozen=True, slots=True)
class Properties:
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


def properties_of(image: Image) -> Properties:
    """Read what is there; tags that cannot be read are as if they were not there."""
    with suppress(*DAMAGE):
        return _from_exif(image.getexif(), _text_chunks(image))
    return Properties()


def _text_chunks(image: Image) -> Mapping[str, Any]:
    """PNG text by its keyword in lower case; a comment in GIF and JPEG goes by the same name."""
    return {str(key).lower(): value for key, value in image.info.items()}


def _from_exif(exif: Exif, chunks: Mapping[str, Any]) -> Properties:
    from PIL.ExifTags import IFD

    taken, place = exif.get_ifd(IFD.Exif), exif.get_ifd(IFD.GPSInfo)
    keywords = _text(exif.get(_XP_KEYWORDS)) or _text(chunks.get("keywords"))
    descriptions = (
        exif.get(_DESCRIPTION),
        exif.get(_XP_COMMENT),
        exif.get(_XP_SUBJECT),
        _commented(taken.get(_USER_COMMENT)),
        chunks.get("description"),
        chunks.get("comment"),
    )
    return Properties(
        title=clean_title(_text(exif.get(_XP_TITLE)) or _text(chunks.get("title"))),
        description=_joined(descriptions),
        artist=clean_title(_first(exif.get(_ARTIST), exif.get(_XP_AUTHOR), chunks.get("author"))),
        camera=_camera(_text(exif.get(_MAKE)), _text(exif.get(_MODEL))),
        keywords=tuple(filter(None, (clean_title(k) for k in re.split(r"[;,]", keywords)))),
        taken_at=_taken_at(exif, taken, chunks),
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
    return storable(text.replace("\0", "")).strip()[:LONGEST]


def _commented(value: object) -> str:
    """A user comment, whose first eight bytes name its encoding."""
    if not isinstance(value, bytes):
        return _text(value)
    encoding = _CHARSETS.get(value[:8])
    return _text(value[8:].decode(encoding, "replace")) if encoding else ""


def _first(*values: object) -> str:
    return next((text for value in values if (text := _text(value))), "")


def _joined(values: tuple[object, ...]) -> str:
    """The different descriptions, without those that nobody wrote."""
    texts = dict.fromkeys(filter(None, map(_text, values)))
    return "\n".join(text for text in texts if not _BY_CAMERA.search(text))


def _camera(make: str, model: str) -> str:
    """Make and model, the make once: most models begin with it."""
    brand = make.split(" ")[0]
    together = model if model.lower().startswith(brand.lower()) else f"{make} {model}"
    return clean_title(together)


def _taken_at(exif: Exif, taken: Mapping[int, Any], chunks: Mapping[str, Any]) -> datetime | None:
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
