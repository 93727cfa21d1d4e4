"""Scorers in Python code of users or packages: functions, and objects with the method `scores`."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from importlib.util import resolve_name
from pathlib import Path
from types import ModuleType
from typing import Any

from pytest_fairness.errors import ModelError
from pytest_fairness.scorers.scoring import SCORE, Scorer, stops_the_run
from pytest_fairness.targets.one_line import one_line
from pytest_fairness.targets.python_import import INSTALLED, imported, is_callable_name, raised_at

OPTION = "fairness_scorers"


class FunctionScorer:
    """Scorer that calls a function once for each text.

    Args:
        identity: name and version of the function's code.
        function: function that takes a text and returns a number.
        cached: whether scores are kept in the store.
    """

    labels = (SCORE,)

    def __init__(self, identity: str, function: Callable[[str], Any], *, cached: bool = True) -> None:
        self.identity, self._function, self.cached = identity, function, cached

    def scores(self, texts: Sequence[str]) -> list[Any]:
        """Return the score of each text, or the exception that the function raised; see `Scorer.scores`."""
        return [self._score(text) for text in texts]

    def _score(self, text: str) -> Any:
        try:
            return self._function(text)
        except ModelError:
            raise
        except BaseException as error:  # a function that exits or skips ends neither run nor test
            if stops_the_run(error):
                raise
            return error


class ObjectScorer:
    """Scorer that is an object of the user with the method `scores`.

    Args:
        identity: name and version of the object's code.
        scorer: object with the method `scores`, and optionally with the attribute `labels`.
    """

    cached = True

    def __init__(self, identity: str, scorer: Any) -> None:
        self.identity, self._scorer = identity, scorer
        labels = getattr(scorer, "labels", (SCORE,))
        named = (labels,) if isinstance(labels, str) else labels
        self.labels = tuple(str(label).casefold() for label in named)

    def scores(self, texts: Sequence[str]) -> Sequence[Any]:
        """Return the scores of all texts; see `Scorer.scores`."""
        scores: Sequence[Any] = self._scorer.scores(texts)
        return scores


def open_python(module: str, attribute: str, root: Path) -> Scorer:
    """Return the scorer that the definition `python:package.module:callable` names.

    Args:
        module: name `package.module` of a module in pytest's rootdir, or of an installed module.
        attribute: name of the callable in the module; dots separate attributes of classes and objects.
        root: pytest's rootdir.

    Raises:
        ModelError: the callable cannot be imported, or is no scorer.
    """
    name = f"python:{module}:{attribute}"
    if not is_callable_name(module, attribute):
        raise ModelError(f"{name!r} in {OPTION} names no callable; write python:package.module:callable.")
    candidate = imported(module, attribute, str(root), name=name, option=OPTION, error=ModelError)
    return scorer_of(candidate, name, module, root, packaged=False)


def scorer_of(candidate: Any, name: str, module: str, root: Path, *, packaged: bool) -> Scorer:
    """Return the scorer for an imported object.

    Args:
        candidate: the object: a function, an object with the method `scores`, or a class, which is called without
            arguments to get such a function or object.
        name: name of the object, for messages and for the identity.
        module: name of the object's module.
        root: pytest's rootdir.
        packaged: whether an installed package declares the object. The object's attribute `identity`, if present, is
            then used unchanged.

    Raises:
        ModelError: the object is no scorer, or its class cannot be called.
    """
    if isinstance(candidate, type):
        try:
            candidate = candidate()
        except Exception as error:
            raise ModelError(f"{name}: the class cannot be called{raised_at(error)}: {one_line(error)}.") from error
    own = getattr(candidate, "identity", None)
    identity = str(own) if own and packaged else f"{name} {own or code_digest(module, root)}"
    if callable(getattr(candidate, "scores", None)):
        return ObjectScorer(identity, candidate)
    if not callable(candidate):
        raise ModelError(f"{name} is neither a function nor an object with the method `scores`.")
    if inspect.iscoroutinefunction(candidate):
        raise ModelError(f"{name} is asynchronous. Write a function that returns the score, without `async`.")
    try:
        inspect.signature(candidate).bind("text")
    except TypeError as error:
        raise ModelError(
            f"{name} must take the text as its only required argument and return a number, like `def score(text): "
            f"...`: {error}."
        ) from error
    except ValueError:
        pass  # a function written in C may have no signature
    return FunctionScorer(identity, candidate)


def code_digest(module: str, root: Path) -> str:
    """Return a digest of the source of a module, and of the user's modules that it imports directly or indirectly.

    Modules of installed packages are left out, except for modules of the module's own package.
    """
    digest, seen, rest = sha256(), {module}, [module]
    while rest:
        name = rest.pop()
        source = _source(sys.modules[name])
        digest.update(f"{name}\0{source}\0".encode())
        for other in _imported_names(source, sys.modules[name]):
            if other not in seen and other in sys.modules and _is_own(sys.modules[other], module, root):
                seen.add(other)
                rest.append(other)
    return digest.hexdigest()[:16]


def _source(module: ModuleType) -> str:
    """Return a module's source; an empty text for a module that is not written in Python."""
    file = getattr(module, "__file__", None) or ""
    return Path(file).read_text("utf-8", "replace") if file.endswith(".py") else ""


def _imported_names(source: str, module: ModuleType) -> Iterator[str]:
    """Yield the names of the modules that the source of a module imports anywhere, in the order of the source."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            relative = "." * node.level + (node.module or "")
            base = resolve_name(relative, module.__package__ or "") if node.level else relative
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _is_own(module: ModuleType, scorer_module: str, root: Path) -> bool:
    """Return whether a module belongs to the user's code, or to the same package as the scorer's module."""
    file = getattr(module, "__file__", None) or ""
    installed = file.startswith(INSTALLED) or "site-packages" in Path(file).parts
    same_package = module.__name__.partition(".")[0] == scorer_module.partition(".")[0]
    return same_package or (not installed and Path(file).is_relative_to(root))
