"""Text becomes structure: language, names, dates, keywords, statements, a gist."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memctl.understanding.builtin_understander import BuiltinUnderstander

__all__ = ["BuiltinUnderstander"]


def __getattr__(name: str) -> object:
    """Import the understander when it is asked for: a query needs only ``terms``."""
    if name == "BuiltinUnderstander":
        from memctl.understanding.builtin_understander import BuiltinUnderstander

        return BuiltinUnderstander
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
