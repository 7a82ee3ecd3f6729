"""The style and the script of a page, each put together from files with one subject."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from fumehood.report.pictures.theme import DARK, LIGHT

STYLES = ("base", "overview", "pictures", "tables", "episodes", "episode")
SCRIPTS = ("dom", "contents", "filters", "listing", "timeline", "calls", "episode", "hints", "main")
"""In the order in which each uses those before it."""


@cache
def style() -> str:
    """Return the style; the colours' names have their values from the theme."""
    parts = [f":root{{color-scheme:light dark;{_values(LIGHT)}}}"]
    parts.append(f"@media (prefers-color-scheme:dark){{:root{{{_values(DARK)}}}}}")
    return "\n".join([*parts, *(_read("style", f"{name}.css") for name in STYLES)])


@cache
def script() -> str:
    """Return the script, in a scope of its own."""
    body = "\n".join(_read("script", f"{name}.js") for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{body}\n}})();'


def _values(colours: Mapping[str, str]) -> str:
    return ";".join(f"{name}:{value}" for name, value in colours.items())


def _read(folder: str, name: str) -> str:
    return (files("fumehood.report.page") / folder / name).read_text(encoding="utf-8")
