"""Commands that need libraries which not everybody installs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fumehood.core.errors import InputError, how_to_install

LIBRARIES = frozenset({"jinja2", "markupsafe", "numpy", "pyarrow", "scipy", "vl_convert"})
"""Of the extra ``report``."""


@contextmanager
def report_extra() -> Iterator[None]:
    """Import in here what needs the extra ``report``.

    Raises:
        InputError: it is not installed; says how to.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in LIBRARIES:
            raise
        raise InputError(
            f"this command needs {error.name}; install it with: {how_to_install('report')}"
        ) from None
