"""Files become text with positions; the only package that knows file formats."""

from memctl.readers.detection import detect_media_type
from memctl.readers.file_kinds import MediaType
from memctl.readers.isolation import Readers, read
from memctl.readers.units import kind_of_units

__all__ = [
    "MediaType",
    "Readers",
    "detect_media_type",
    "kind_of_units",
    "read",
]
