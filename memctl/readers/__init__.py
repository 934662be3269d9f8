"""Files become text with positions; the only room that knows file formats."""

from memctl.readers.apart import Readers
from memctl.readers.detect import detect
from memctl.readers.reading import read, supported
from memctl.readers.registry import MediaType

__all__ = ["MediaType", "Readers", "detect", "read", "supported"]
