"""The two tools of agents: names, schemas, descriptions. They are equal in every data mode."""

from __future__ import annotations

from typing import Any

QUERY_CHARS_MAX = 2000
REFERENCE_CHARS_MAX = 4096
K_MAX = 50

SEARCH: dict[str, Any] = {
    "name": "search",
    "description": "Search pages. Each result has an ID for opening and citing the page.",
    "parameters": {
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "maxLength": QUERY_CHARS_MAX},
            "k": {
                "type": "integer",
                "minimum": 1,
                "maximum": K_MAX,
                "description": "Number of results.",
            },
            "filter": {
                "type": "object",
                "description": "Return only pages whose field has this value, such as a host.",
                "additionalProperties": {"type": "string"},
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    },
}

OPEN_PAGE: dict[str, Any] = {
    "name": "open_page",
    "description": (
        "Read the text of a page from an offset. "
        "If the page continues, next_offset is the next offset."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "page": {
                "type": "string",
                "minLength": 1,
                "maxLength": REFERENCE_CHARS_MAX,
                "description": "An ID from a search, or a URL.",
            },
            "offset": {
                "type": "integer",
                "minimum": 0,
                "description": "Offset in characters, from 0.",
            },
        },
        "required": ["page"],
        "additionalProperties": False,
    },
}

TOOLS = (SEARCH, OPEN_PAGE)
