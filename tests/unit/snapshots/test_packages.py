"""Packages import only from those listed above them in the package docstring."""

from __future__ import annotations

import re

import grimp

import fumehood_snapshots


def test_each_package_imports_only_from_those_above_it() -> None:
    packages = re.findall(r"^    (\w+)  +\S", fumehood_snapshots.__doc__ or "", re.MULTILINE)
    graph = grimp.build_graph("fumehood_snapshots", cache_dir=None)
    order = {name: place for place, name in enumerate(packages)}
    assert {module.split(".")[1] for module in graph.modules if "." in module} == set(packages)
    wrong = [
        f"{importer} imports {imported}"
        for importer in graph.modules
        for imported in graph.find_modules_directly_imported_by(importer)
        if importer.count(".") and order[imported.split(".")[1]] > order[importer.split(".")[1]]
    ]
    assert wrong == []
