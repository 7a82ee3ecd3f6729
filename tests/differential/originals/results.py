"""The verdict on a list of results of tools."""

import json
from hashlib import sha256
from typing import Any


def results_digest(results: list[Any]) -> str:
    """Return a hash of the results; it begins with "1" if a call succeeded, or else with "0"."""
    succeeded = any(
        kind == "value" and not (isinstance(value, dict) and value.get("success") is False)
        for kind, value in results
    )
    text = json.dumps(results, default=str, sort_keys=True)
    return f"{int(succeeded)}:{sha256(text.encode()).hexdigest()[:12]}"
