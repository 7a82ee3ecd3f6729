"""An agent whose module cannot be imported."""

import no_such_module  # type: ignore[import-not-found]  # noqa: F401


class Agent:
    """Never constructed."""
