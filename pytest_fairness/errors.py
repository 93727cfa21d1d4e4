"""What can go wrong, each with a message that names the file or setting and the cure.

Every error that a user can cause derives from `FairnessError`; its text is complete and shown without a traceback.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum, auto

SHORT_MESSAGE = 160
"""Characters of the message of a failed request where many are told of."""

_TRIES = re.compile(r" Asked \d+ times\.$")


class FairnessError(Exception):
    """Base of all errors that are shown to the user as they stand, without a traceback."""


class ProbeError(FairnessError):
    """One probe file has faults; the message holds one `path:line:column: message` a line, all of them."""


class TargetError(FairnessError):
    """The system under test cannot be reached or used as configured (missing key, unknown model, missing package)."""


class ModelError(FairnessError):
    """A model that reads answers cannot be used (missing package, model not there, labels that are not understood)."""


class Fault(Enum):
    """What kept one try of a request from an answer, and so whether and when to try again."""

    FINAL = auto()
    """Another try would end the same way."""
    PASSING = auto()
    """Something broke on the way: another try may well do."""
    SLOW = auto()
    """No answer in time."""
    BUSY = auto()
    """The target turned it away, as it has too much to do."""
    UNREACHABLE = auto()
    """No connection came about; the request itself was never sent."""
    REWORDED = auto()
    """The target wants the same question in another form, in which it will be put from now on."""


class RequestFailed(FairnessError):
    """One request got no answer. Other requests go on.

    Args:
        message: complete, as all errors' are.
        fault: whether and when another try may help.
        wait: seconds that the target asks to be left alone for, or `None`.
    """

    def __init__(self, message: str, *, fault: Fault = Fault.FINAL, wait: float | None = None) -> None:
        super().__init__(message)
        self.fault = fault
        self.wait = wait


class StoreError(FairnessError):
    """The store of recorded responses cannot be read or written."""


class AnswersMissing(FairnessError):
    """An item lacks answers: failed, not recorded under `--fairness-replay`, over budget, or given up."""


class NotMeasurable(FairnessError):
    """There are too few usable answers to measure anything.

    Args:
        message: complete, as all errors' are.
        unusable: whether there are answers that could not be used, which are worth reading.
        hopeless: whether no number of answers would help.
    """

    def __init__(self, message: str, *, unusable: bool = False, hopeless: bool = False) -> None:
        super().__init__(message)
        self.unusable = unusable
        self.hopeless = hopeless


class BaselineError(FairnessError):
    """A baseline file cannot be read or written.

    Attributes:
        remade: whether a new one is the cure.
    """

    def __init__(self, message: str, *, remade: bool = False) -> None:
        super().__init__(message)
        self.remade = remade


class BaselineStale(FairnessError):
    """The baseline was made from something else than this run; `parts` name what differs (`list of entities`)."""

    def __init__(self, parts: Sequence[str]) -> None:
        super().__init__(f"the baseline was made from another {', '.join(parts)}")
        self.parts = tuple(parts)


def short_message(message: str) -> str:
    """Return the first line of a failed request's message, shortened, without the number of tries."""
    line = next(iter(_TRIES.sub("", message).strip().splitlines()), "").strip().removesuffix(".")
    return line if len(line) <= SHORT_MESSAGE else f"{line[: SHORT_MESSAGE - 1]}…"
