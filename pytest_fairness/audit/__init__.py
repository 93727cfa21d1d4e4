"""What is measured: one file a method; see docs/architecture.md.

`from pytest_fairness import audit` gives users a function, and Python this package. So the package can be called.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        """Measure every audit of a probe file, without pytest; see `pytest_fairness.run.audit`."""
        # By name, as this layer knows nothing of that one.
        return import_module("pytest_fairness.run").audit(*arguments, **settings)


sys.modules[__name__].__class__ = _Callable
