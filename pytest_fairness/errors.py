"""What can go wrong, each with a message that names the file or setting and the cure.

Every error that a user can cause derives from `FairnessError`; its text is complete and shown without a traceback.
"""

from __future__ import annotations

from collections.abc import Sequence


class FairnessError(Exception):
    """Base of all errors that are shown to the user as they stand, without a traceback."""


class ProbeError(FairnessError):
    """One probe file has faults; the message holds one `path:line:column: message` a line, all of them."""


class TargetError(FairnessError):
    """The system under test cannot be reached or used as configured (missing key, unknown model, missing package)."""


class ModelError(FairnessError):
    """A model that reads answers cannot be used (missing package, model not there, labels that are not understood)."""


class RequestFailed(FairnessError):
    """One request got no answer, after all retries. Other requests go on."""


class StoreError(FairnessError):
    """The store of recorded responses cannot be read or written."""


class AnswersMissing(FairnessError):
    """An item lacks answers: failed, not recorded under `--fairness-replay`, over budget, or given up."""


class NotMeasurable(FairnessError):
    """There are too few usable answers to measure anything."""


class BaselineError(FairnessError):
    """A baseline file cannot be read or written."""


class BaselineStale(FairnessError):
    """The baseline was made from something else than this run; `parts` name what differs (`list of entities`)."""

    def __init__(self, parts: Sequence[str]) -> None:
        super().__init__(f"the baseline was made from another {', '.join(parts)}")
        self.parts = tuple(parts)
