"""An agent whose module cannot be imported."""

import no_such_module  # noqa: F401


class Agent:
    """Never made."""
