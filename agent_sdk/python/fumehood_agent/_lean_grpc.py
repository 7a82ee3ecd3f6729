"""Imports gRPC without modules that gRPC, protobuf and Python's library import but rarely use.

A client with asyncio, the output of an error, and the inspection of source code need these modules.
Their imports take more than a third of the processor time in which an agent starts. This module
must be imported before gRPC and dataclasses.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any


class _Deferred(ModuleType):
    """Replaces a module, and imports it when something uses one of its names."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


@contextmanager
def _deferred(*names: str) -> Iterator[None]:
    """Within the block, let each import of these modules get a :class:`_Deferred`."""
    modules = {name: _Deferred(name) for name in names if name not in sys.modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, module in modules.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]


_UNUSED = (
    *("asyncio", "socket", "grpc.aio", "google.protobuf.internal.python_message"),
    *("calendar", "inspect", "pkgutil", "traceback"),
)

with _deferred(*_UNUSED):
    import_module("dataclasses")
    import_module("google.protobuf.internal.well_known_types")
    import_module("google.protobuf.internal.builder")
    import_module("grpc")
