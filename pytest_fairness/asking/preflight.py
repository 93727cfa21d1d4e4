"""Preflight: the first request of a run to a target is sent alone, so that a wrong key or model name fails once."""

from __future__ import annotations

from pytest_fairness.asking.request_tracker import RequestTracker
from pytest_fairness.errors import FairnessError, RequestFailed, RetryReason, TargetError
from pytest_fairness.records import Request, Response

MAX_REJECTIONS = 2
"""Number of rejected requests after which no more are sent to the target. The first and the last planned request
usually have different prompts, and a server that filters contents rarely rejects both."""


class Preflight:
    """Preflight in this process. Another process of the run may send the first request; the store keeps which one.

    Args:
        tracker: the requests and their states.

    Attributes:
        key: key of the request while this process sends it alone.
    """

    def __init__(self, tracker: RequestTracker) -> None:
        self._tracker = tracker
        self._rejections = 0
        self.key: str | None = None

    def rejects(self, request: Request, outcome: Response | FairnessError) -> bool:
        """Return whether the target rejected a request and may reject all others.

        It may not if an answer of it is recorded. Texts to embed differ: some may be too long.
        """
        rejected = isinstance(outcome, RequestFailed) and outcome.check is not None
        return rejected and request.answer_format != "embedding" and not self._tracker.counts()["reused"]

    def goes_on_after(self, request: Request, outcome: Response | FairnessError) -> bool:
        """Return whether all other requests must still wait after this attempt of the first request."""
        rephrased = isinstance(outcome, RequestFailed) and outcome.retry is RetryReason.REPHRASED
        return rephrased or isinstance(outcome, TargetError) or self.rejects(request, outcome)

    def judged(self, key: str, request: Request, outcome: Response | FairnessError) -> Response | FairnessError:
        """Return the outcome of an attempt; a `TargetError` if the target has rejected all requests so far."""
        if key != self.key or not self.rejects(request, outcome):
            return outcome
        self._rejections += 1
        if self._rejections < MAX_REJECTIONS:
            return outcome
        said, check = str(outcome).rstrip("."), getattr(outcome, "check", "")
        return TargetError(f"{said}. The first requests were rejected, so no more were sent. Check {check}; run again.")
