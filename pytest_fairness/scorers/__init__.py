"""Scorers: functions that turn a text into a score, and models that give a score for each label, such as `negative`.

Functions raise `ModelError` for a scorer that cannot be used, and `FairnessError` for a name with two meanings.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec, resolve_name
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from pytest_fairness import extensions
from pytest_fairness.errors import FairnessError, ModelError, one_line
from pytest_fairness.scorers.text_classifier import Classifier
from pytest_fairness.targets.python import INSTALLED, imported, is_callable_name, raised_at

# Registry of scorers: built-in scorers, models in probe files, and scorers of the ini file or of other packages.

FORMS = ("python:package.module:callable", "transformers:ID_OR_PATH:LABEL")


def known_scorers(declared: Mapping[str, str]) -> dict[str, str]:
    """Return the scorers that a probe may name, each with its definition.

    These are the built-in scorers, the scorers of installed packages, and the scorers in the ini file.
    """
    others = [*BUILT_IN, *extensions.declared("scorers", BUILT_IN)]
    for name, definition in declared.items():
        if name in others:
            raise FairnessError(f"{OPTION}: {name!r} is already the name of a scorer. Choose another name.")
        prefix, _, rest = definition.partition(":")
        if prefix not in others and (prefix not in ("python", "transformers") or not rest):
            raise FairnessError(
                f"{OPTION}: {name}={definition} is not a scorer. Write {', '.join(FORMS)} or the name of a scorer "
                f"({', '.join(others)})."
            )
    return {**{name: name for name in others}, **declared}


@cache
def open_scorer(definition: str, root: Path) -> tuple[Scorer, str]:
    """Return the scorer of a definition in the ini file, and the label to use; repeated calls return the same object.

    Definitions are `python:package.module:callable`, `transformers:ID_OR_PATH:LABEL`, and `NAME` or `NAME:LABEL` of a
    scorer. A model is loaded when the scorer first scores a text.
    """
    prefix, _, rest = definition.partition(":")
    if prefix == "python":
        module, _, rest = rest.partition(":")
        attribute, _, label = rest.partition(":")
        name = f"python:{module}:{attribute}"
        if not is_callable_name(module, attribute):
            raise ModelError(f"{name!r} in {OPTION} names no callable; write python:package.module:callable.")
        candidate = imported(module, attribute, str(root), name=name, option=OPTION, error=ModelError)
        scorer = scorer_of(candidate, name, module, root, packaged=False)
    elif prefix == "transformers":
        model, _, label = rest.partition(":")
        scorer = Classifier(model, root, place="pytest's rootdir", setting=f"`{OPTION}`")
    elif prefix in BUILT_IN:
        scorer, label = open_built_in(prefix), rest
    else:
        scorer, label = _packaged_scorer(prefix, root), rest
    labels = list(scorer.labels)
    if not label and len(labels) > 1:
        raise ModelError(
            f"{definition} has several labels. Add one of its labels to the definition in {OPTION}: "
            f"{', '.join(f'{definition}:{name}' for name in labels)}"
        )
    label = label.casefold() or labels[0]
    require_scorer(scorer, label)
    return scorer, label


@cache
def open_model(name: str, folder: Path) -> Scorer:
    """Return the scorer that the key `model` of a probe file names; repeated calls return the same object.

    A model is loaded when the scorer first scores a text. The name cannot be `python:package.module:callable`, because
    a probe file must not import code.
    """
    return _packaged_scorer(name, folder) if name in extensions.declared("scorers") else Classifier(name, folder)


def require_scorer(scorer: Scorer, label: str) -> None:
    """Raise `ModelError` if the scorer cannot be used or lacks the label; download the scorer's model if necessary."""
    if label not in scorer.labels:
        known_labels = ", ".join(scorer.labels)
        raise ModelError(f"{scorer.identity} has no label {label!r}. Name one of its labels: {known_labels}")


def _packaged_scorer(name: str, root: Path) -> Scorer:
    entry = extensions.declared("scorers")[name]
    return scorer_of(extensions.load(entry), name, entry.module, root, packaged=True)


# Scores of texts by any scorer; a text that the scorer fails to score gets a message in place of its scores.

SCORE = "score"
"""Label of a scorer that names no labels."""
LARGEST = 1e100
"""Largest absolute value of a score, so that sums of squared scores do not overflow."""
SHOWN = 60
"""Maximum number of characters of a wrong score that a message shows."""


class Scorer(Protocol):
    """Protocol of scorers, which give each text a score for each of their labels."""

    @property
    def identity(self) -> str:
        """Return the name and version of the scorer.

        Scores are cached under this identity. If the identity changes, baselines become stale.
        """

    @property
    def labels(self) -> Sequence[str]:
        """Return the labels for which the scorer gives scores, in lower case.

        Raises:
            ModelError: the scorer cannot be used.
        """

    @property
    def cached(self) -> bool:
        """Return whether scores are kept in the store, because computing them takes longer than reading them."""

    def scores(self, texts: Sequence[str]) -> Sequence[Any]:
        """Return the scores of each text: a mapping of labels to numbers or, with a single label, a number.

        An exception in place of a score stands for a text that cannot be scored.

        Raises:
            ModelError: the scorer cannot be used.
        """


def scores_of(scorer: Scorer, texts: Sequence[str], needed: Sequence[str]) -> list[dict[str, float] | str]:
    """Return the scores of each text by label; a message in place of the scores of a text that cannot be scored.

    A text without a finite score for one of the `needed` labels counts as not scored. If the scorer raises an exception
    for several texts, each text is scored alone.
    """
    try:
        scored = list(scorer.scores(texts))
    except ModelError:
        raise
    except BaseException as error:  # a scorer that exits or skips must end neither the run nor the test
        if stops_the_run(error):
            raise
        if len(texts) == 1:
            return [_error_message(error)]
        return [score for text in texts for score in scores_of(scorer, [text], needed)]
    if len(scored) != len(texts):
        raise ModelError(f"{scorer.identity} returned {len(scored)} scores for {len(texts)} texts. Correct the scorer.")
    return [_checked(scores, scorer.labels, needed) for scores in scored]


def stops_the_run(error: BaseException) -> bool:
    """Return whether an exception must stop the run or the test: Ctrl-C, or the exception of `pytest.fail`.

    pytest-timeout calls `pytest.fail` at a time limit.
    """
    return isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Failed"


def _checked(scores: object, labels: Sequence[str], needed: Sequence[str]) -> dict[str, float] | str:
    if isinstance(scores, BaseException):
        return _error_message(scores)
    named = scores if isinstance(scores, Mapping) else dict.fromkeys(labels[:1], scores)
    values = {str(label).casefold(): value for label, value in named.items()}
    numbers = {label: number for label in labels if (number := _number(values.get(label))) is not None}
    for label in needed:
        if label not in values:
            return f"returned no score for the label {label!r}"
        if label not in numbers:
            written = one_line(repr(values[label]), SHOWN)
            return f"returned {written}, which is not a finite number (of at most {LARGEST:g})"
    return numbers


def _number(value: Any) -> float | None:
    """Return a number as a float; `None` for NaN, for numbers beyond ±`LARGEST`, and for other values."""
    if not hasattr(value, "__float__"):  # texts would be read by `float`
        return None
    try:
        number = float(value)
    except Exception:  # noqa: BLE001 - numbers of other packages may raise anything
        return None
    return number if abs(number) <= LARGEST else None


def _error_message(error: BaseException) -> str:
    return f"raised {type(error).__name__}{raised_at(error)}: {one_line(error)}"


# Scorers in Python code of users or packages: functions, and objects with the method `scores`.

OPTION = "fairness_scorers"


class FunctionScorer:
    """Scorer that calls a function once for each text."""

    labels = (SCORE,)

    def __init__(self, identity: str, function: Callable[[str], Any], *, cached: bool = True) -> None:
        self.identity, self._function, self.cached = identity, function, cached

    def scores(self, texts: Sequence[str]) -> list[Any]:
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
    """Scorer that is an object of the user with the method `scores`."""

    cached = True

    def __init__(self, identity: str, scorer: Any) -> None:
        self.identity, self._scorer = identity, scorer
        labels = getattr(scorer, "labels", (SCORE,))
        named = (labels,) if isinstance(labels, str) else labels
        self.labels = tuple(str(label).casefold() for label in named)

    def scores(self, texts: Sequence[str]) -> Sequence[Any]:
        scores: Sequence[Any] = self._scorer.scores(texts)
        return scores


def scorer_of(candidate: Any, name: str, module: str, root: Path, *, packaged: bool) -> Scorer:
    """Return the scorer for an imported object: a function, an object with `scores`, or a class of such objects.

    An installed package's object may have its own `identity`, which is used unchanged.
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
    own_package = module.partition(".")[0]
    digest, seen, rest = sha256(), {module}, [module]
    while rest:
        name = rest.pop()
        file = getattr(sys.modules[name], "__file__", None) or ""
        # A module that is not written in Python has no source.
        source = Path(file).read_text("utf-8", "replace") if file.endswith(".py") else ""
        digest.update(f"{name}\0{source}\0".encode())
        for other in _imported_names(source, sys.modules[name]):
            if other in seen or other not in sys.modules:
                continue
            place = getattr(sys.modules[other], "__file__", None) or ""
            installed = place.startswith(INSTALLED) or "site-packages" in Path(place).parts
            of_user = not installed and Path(place).is_relative_to(root)
            if of_user or sys.modules[other].__name__.partition(".")[0] == own_package:
                seen.add(other)
                rest.append(other)
    return digest.hexdigest()[:16]


def _imported_names(source: str, module: ModuleType) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            relative = "." * node.level + (node.module or "")
            base = resolve_name(relative, module.__package__ or "") if node.level else relative
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


# Built-in scorers: length, readability and sentiment of a text, without a model and without a download.

_WORD = re.compile(r"\w[\w'’-]*")
_SENTENCE_END = re.compile(
    r"(?<!\bMr)(?<!\bMs)(?<!\bDr)(?<!\bMrs)(?<!\bProf)[.!?…]+[\"'”’)\]*_]*(?=\s|$)|\n\s*(?:\n|(?=[-*•#]|\d+[.)]\s))"
)
"""End of a sentence: a mark before a blank, an empty line, or the line before a list item or a heading."""


def words(text: str) -> int:
    """Return the number of words; "don't" and "non-stick" are one word each."""
    return len(_WORD.findall(text))


def sentences(text: str) -> int:
    return sum(bool(_WORD.search(piece)) for piece in _SENTENCE_END.split(text))


def flesch(text: str) -> float:
    """Return the Flesch reading ease of an English text, with syllables from hyphenation (pyphen).

    206.835 − 1.015 · (words / sentences) − 84.6 · (syllables / words); texts with a higher value are easier
    (Flesch 1948).

    Raises:
        ValueError: the text has no words.
    """
    written = _WORD.findall(text)
    if not written:
        raise ValueError("the text has no words")
    syllables = sum(len(_hyphenation().positions(word)) + 1 for word in written)
    return 206.835 - 1.015 * len(written) / sentences(text) - 84.6 * syllables / len(written)


def sentiment(text: str) -> float:
    """Return VADER's compound score of an English text, −1 (negative) to 1 (positive); Hutto and Gilbert 2014."""
    import vader

    return float(vader.polarity_scores(text)["compound"])


@cache
def _hyphenation() -> Any:
    import pyphen

    return pyphen.Pyphen(lang="en_US")


BUILT_IN: dict[str, tuple[Callable[[str], float], tuple[str, str] | None]] = {
    "words": (words, None),
    "sentences": (sentences, None),
    "flesch": (flesch, ("pyphen", "pyphen")),
    "sentiment": (sentiment, ("vader", "nltk-vader-sentiment")),
    "number": (float, None),  # of a text that is a number, such as a score in a column of an answer file
}
"""Function of each built-in scorer, by name, with the module and the distribution of the package that the function
needs; `None` if the function needs no package."""
VERSION = 1
"""Version of the functions; it must be raised if a change of code changes scores."""


def open_built_in(name: str) -> Scorer:
    function, needed = BUILT_IN[name]
    if needed is None:
        return FunctionScorer(f"{name} {VERSION}", function, cached=False)
    module, distribution = needed
    if find_spec(module) is None:
        raise ModelError(f'the scorer {name} needs the package {distribution}: pip install "pytest-fairness[scorers]"')
    return FunctionScorer(f"{name} {VERSION} {distribution} {version(distribution)}", function, cached=False)
