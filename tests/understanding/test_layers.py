"""What the room costs those who need only a part of it."""

from __future__ import annotations

import subprocess
import sys


def test_terms_for_a_query_do_not_load_the_understander() -> None:
    code = (
        "import sys; import memctl.language.term_analysis;"
        "print([m for m in sys.modules if m.startswith('memctl.understanding.')"
        " or m in ('numpy', 'pyarrow')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "builtin" not in done.stdout
    assert "numpy" not in done.stdout
