"""What a report may do in a browser: nothing but what it brings along."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256


def content_security_policy(style: str, script: str) -> str:
    """Return the policy of a page that holds exactly this one style and this one script.

    Nothing is fetched, nothing is sent, and no other script or style runs, whatever texts the page holds.
    """
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src '{_digest(style)}'",
            f"script-src '{_digest(script)}'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode('utf-8')).digest()).decode('ascii')}"
