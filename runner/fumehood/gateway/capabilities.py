"""Functions of a provider beyond text, and the rules that detect them in model requests.

A rule reads one value of a request and records its needs. A need is the name of a capability,
``field:PATH`` for a field that no rule knows, or ``beta:NAME`` for a beta header. A run grants
needs by name; a request with another need is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase

from fumehood.core.json_values import Json

NEEDS_MAX = 8
"""Largest number of recorded needs of one request."""
NAME_CHARACTERS_MAX = 64
FIELD_PREFIX = "field:"
BETA_PREFIX = "beta:"
_GRANT = re.compile(r"(field|beta):[!-~]{1,256}")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,64}")
_BASE64 = re.compile(r"[A-Za-z0-9+/=_\s-]*")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_META_SCHEMAS = ("http://json-schema.org/", "https://json-schema.org/")


class Capability(Enum):
    """A function of a provider that this host cannot control."""

    WEB_SEARCH = "web_search"
    """The provider searches the web."""
    WEB_FETCH = "web_fetch"
    """The provider fetches pages."""
    CODE_INTERPRETER = "code_interpreter"
    """The provider runs code, possibly with a network."""
    REMOTE_MCP = "remote_mcp"
    """The provider calls an MCP server or a connector."""
    COMPUTER_USE = "computer_use"
    """The provider's tools that operate a computer."""
    FILE_SEARCH = "file_search"
    """The provider searches stored files."""
    IMAGE_GENERATION = "image_generation"
    """The provider generates images."""
    MEDIA_OUTPUT = "media_output"
    """The provider replies with images or speech, whose tokens have other prices than text."""
    IMAGE_URL = "image_url"
    """The provider fetches an image."""
    FILE_URL = "file_url"
    """The provider fetches a document."""
    STORED_FILES = "stored_files"
    """Files and containers by ID."""
    STORED_RESPONSES = "stored_responses"
    """The provider stores responses, or reads stored ones by ID."""
    STORED_PROMPTS = "stored_prompts"
    """Prompts by ID, which may contain tools."""
    BACKGROUND = "background"
    """The provider works on after the connection has ended."""
    SERVICE_TIER = "service_tier"
    """Another price or latency than the default."""


def is_grant(name: str) -> bool:
    """Return whether a run can grant ``name``."""
    return name in {item.value for item in Capability} or _GRANT.fullmatch(name) is not None


@dataclass(slots=True)
class Needs:
    """The needs of a request."""

    fields: dict[str, str] = field(default_factory=dict)
    """Need → the first field with this need, such as ``tools[].type``."""
    has_media: bool = False
    """Whether it contains an image, a sound or a document, whose tokens its size does not bound."""

    def add(self, need: str, path: str) -> None:
        """Record a need of the field ``path``."""
        if need not in self.fields and len(self.fields) < NEEDS_MAX:
            self.fields[need] = path

    def unknown(self, path: str) -> None:
        """Record a field that no rule knows."""
        self.add(FIELD_PREFIX + path, path)


Rule = Callable[[Json, str, Needs], None]
"""Records the needs of a value; the path of the whole request is ``""``."""


def shown(name: str) -> str:
    """Return a name from a request in a form that is safe to print, at most 66 characters."""
    return name if _PLAIN_NAME.fullmatch(name) else ascii(name[: NAME_CHARACTERS_MAX // 4])


def anything(value: Json, path: str, needs: Needs) -> None:
    """Accept any value: data of the agent, such as a schema or the arguments of a tool."""


def schema(value: Json, path: str, needs: Needs) -> None:
    """Accept a JSON Schema that refers to no other document, because a provider may fetch it."""
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, list):
            left.extend(part)
        if not isinstance(part, dict):
            continue
        left.extend(part.values())
        places = [(key, "#") for key in _REFERENCES] + [("$schema", _META_SCHEMAS)]
        for key, known in places:
            if isinstance(place := part.get(key), str) and not place.startswith(known):
                needs.add(Capability.FILE_URL.value, f"{path}.{key}")


def scalar(value: Json, path: str, needs: Needs) -> None:
    """Accept a value without parts."""
    if isinstance(value, dict | list):
        needs.unknown(path)


def scalars(value: Json, path: str, needs: Needs) -> None:
    """Accept a value without parts, a list of such values, or an object of such values."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if any(isinstance(part, dict | list) for part in parts):
        needs.unknown(path)


def fields(rules: Mapping[str, Rule]) -> Rule:
    """Return a rule for an object with these fields. Any field may be null."""

    def check(value: Json, path: str, needs: Needs) -> None:
        if value is None:
            return
        if not isinstance(value, dict):
            needs.unknown(path)
            return
        for name, item in value.items():
            if item is None:
                continue
            field_path = f"{path}.{shown(name)}" if path else shown(name)
            rule = rules.get(name)
            if rule is None:
                needs.unknown(field_path)
            else:
                rule(item, field_path, needs)

    return check


def items(rule: Rule) -> Rule:
    """Return a rule for a list whose items match ``rule``."""

    def check(value: Json, path: str, needs: Needs) -> None:
        if not isinstance(value, list):
            needs.unknown(path)
            return
        for item in value:
            rule(item, f"{path}[]", needs)

    return check


def text_or(rule: Rule) -> Rule:
    """Return a rule for a string, or a value that matches ``rule``."""

    def check(value: Json, path: str, needs: Needs) -> None:
        if not isinstance(value, str):
            rule(value, path, needs)

    return check


def by_type(rules: Mapping[str, Rule], default: str | None = None) -> Rule:
    """Return a rule that the field ``type`` of an object selects.

    Args:
        rules: by name or pattern of the type; the first match counts.
        default: type of an object without one.
    """

    def check(value: Json, path: str, needs: Needs) -> None:
        kind = value.get("type", default) if isinstance(value, dict) else None
        if not isinstance(kind, str):
            needs.unknown(path)
            return
        rule = rules.get(kind) or next(
            (rules[name] for name in rules if fnmatchcase(kind, name)), None
        )
        if rule is None:
            needs.unknown(f"{path}.type={shown(kind)}")
        else:
            rule(value, path, needs)

    return check


def needs(capability: Capability, *harmless: Json) -> Rule:
    """Return a rule for a value that needs a capability, unless it is false or ``harmless``."""

    def check(value: Json, path: str, needed: Needs) -> None:
        if value is not False and value not in harmless:
            needed.add(capability.value, path)

    return check


def media(rule: Rule) -> Rule:
    """Return ``rule`` for an image, a sound or a document."""

    def check(value: Json, path: str, needs: Needs) -> None:
        needs.has_media = True
        rule(value, path, needs)

    return check


def data_url(capability: Capability) -> Rule:
    """Return a rule for a URL that contains its data; any other one needs ``capability``."""

    def check(value: Json, path: str, needs: Needs) -> None:
        if not (isinstance(value, str) and value.startswith("data:")):
            needs.add(capability.value, path)

    return check


def embedded(value: Json, path: str, needs: Needs) -> None:
    """Accept data in base64 or in a data URL. Some providers fetch an address in its place."""
    if not (isinstance(value, str) and (value.startswith("data:") or _BASE64.fullmatch(value))):
        needs.add(Capability.FILE_URL.value, path)
