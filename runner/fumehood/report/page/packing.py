"""Data inside a page: JSON that cannot end its element, and bodies packed until somebody opens them."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from typing import Any

from markupsafe import Markup


def embedded_json(value: Any) -> Markup:
    """Return JSON for a script element of a data type; no text in it can close the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # Within JSON these characters stand in texts only, so escaping them changes nothing.
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def packed(value: Any) -> str:
    """Return JSON as gzip in base64; the same value gives the same text."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return b64encode(gzip.compress(text.encode("utf-8"), compresslevel=9, mtime=0)).decode("ascii")
