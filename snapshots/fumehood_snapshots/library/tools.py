"""The two tools as agents see them: names, schemas, descriptions. The same in every environment."""

from __future__ import annotations

from typing import Any

QUERY_CHARS_MAX = 2000
REFERENCE_CHARS_MAX = 4096
K_MAX = 50

SEARCH: dict[str, Any] = {
    "name": "search",
    "description": "Find pages. Each result has an id, by which the page can be opened and cited.",
    "parameters": {
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "maxLength": QUERY_CHARS_MAX},
            "k": {
                "type": "integer",
                "minimum": 1,
                "maximum": K_MAX,
                "description": "How many results.",
            },
            "filter": {
                "type": "object",
                "description": "Only pages whose field has this value, such as a host.",
                "additionalProperties": {"type": "string"},
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    },
}

OPEN_PAGE: dict[str, Any] = {
    "name": "open_page",
    "description": "Read a page from a character on. Where it goes on, next_offset says from where.",
    "parameters": {
        "type": "object",
        "properties": {
            "page": {
                "type": "string",
                "minLength": 1,
                "maxLength": REFERENCE_CHARS_MAX,
                "description": "An id from a search, or a URL.",
            },
            "offset": {
                "type": "integer",
                "minimum": 0,
                "description": "In characters; 0 at first.",
            },
        },
        "required": ["page"],
        "additionalProperties": False,
    },
}

TOOLS = (SEARCH, OPEN_PAGE)
