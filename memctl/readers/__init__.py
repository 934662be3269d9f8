"""Files become text with positions; the only package that knows file formats."""

from memctl.readers.detection import detect_media_type
from memctl.readers.file_kinds import MediaType
from memctl.readers.isolation import Readers, read, supported_kinds

__all__ = ["MediaType", "Readers", "detect_media_type", "read", "supported_kinds"]
