"""Registry of scorers: built-in scorers, models in probe files, and scorers of the ini file or of other packages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from pytest_fairness import extensions
from pytest_fairness.errors import FairnessError, ModelError
from pytest_fairness.scorers.built_in import BUILT_IN, open_built_in
from pytest_fairness.scorers.functions import OPTION, open_python, scorer_of
from pytest_fairness.scorers.scoring import Scorer
from pytest_fairness.scorers.text_classifier import Classifier

FORMS = ("python:package.module:callable", "transformers:ID_OR_PATH:LABEL")


def known(declared: Mapping[str, str]) -> dict[str, str]:
    """Return the scorers that a probe may name, each with its definition.

    These are the built-in scorers, the scorers of installed packages, and the scorers in the ini file.

    Args:
        declared: definition of each scorer in the ini file, by name.

    Raises:
        FairnessError: a name in the ini file is already used, or a definition is not valid.
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

    A model is loaded when the scorer first scores a text.

    Args:
        definition: `python:package.module:callable`, `transformers:ID_OR_PATH:LABEL`, `NAME` or `NAME:LABEL`; `NAME` is
            the name of a scorer.
        root: pytest's rootdir.

    Raises:
        ModelError: the scorer cannot be used or lacks the label, or the scorer has several labels and the definition
            names no label.
        FairnessError: an extension cannot be imported.
    """
    prefix, _, rest = definition.partition(":")
    if prefix == "python":
        module, _, rest = rest.partition(":")
        attribute, _, label = rest.partition(":")
        scorer = open_python(module, attribute, root)
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
    require(scorer, label)
    return scorer, label


@cache
def open_model(name: str, folder: Path) -> Scorer:
    """Return the scorer that the key `model` of a probe file names; repeated calls return the same object.

    A model is loaded when the scorer first scores a text. The name cannot be `python:package.module:callable`, because
    a probe file must not import code.

    Args:
        name: name of an entry point in `pytest_fairness.scorers`, an id of the Hugging Face Hub, or a folder inside of
            `folder`.
        folder: folder of the probe.

    Raises:
        FairnessError: an extension cannot be imported.
    """
    return _packaged_scorer(name, folder) if name in extensions.declared("scorers") else Classifier(name, folder)


def require(scorer: Scorer, label: str) -> None:
    """Raise `ModelError` if the scorer cannot be used or lacks the label; download the scorer's model if necessary."""
    if label not in scorer.labels:
        known_labels = ", ".join(scorer.labels)
        raise ModelError(f"{scorer.identity} has no label {label!r}. Name one of its labels: {known_labels}")


def _packaged_scorer(name: str, root: Path) -> Scorer:
    entry = extensions.declared("scorers")[name]
    return scorer_of(extensions.load(entry), name, entry.module, root, packaged=True)
