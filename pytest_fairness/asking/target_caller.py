"""One attempt to send a request, with the time limit, the size limit and the removal of secrets."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from pytest_fairness.asking.give_up import GiveUpTimer
from pytest_fairness.asking.secrets import environment_redactor
from pytest_fairness.errors import FairnessError, RequestFailed, RetryReason
from pytest_fairness.options import RunSettings
from pytest_fairness.records import TOO_LONG, Request, Response
from pytest_fairness.targets.base import Target
from pytest_fairness.targets.one_line import one_line
from pytest_fairness.targets.threads import is_cancelled


class TargetCaller:
    """Caller of a target: makes one attempt to send a request, within the limits of the run.

    Args:
        target: the system under test; it is not opened or closed here.
        settings: settings of the run; `timeout` and `max_answer_bytes` are used.
        timer: give-up timer, in which every answer and failure is recorded.
    """

    def __init__(self, target: Target, settings: RunSettings, timer: GiveUpTimer) -> None:
        self._target, self._settings, self._timer = target, settings, timer
        self._redact = environment_redactor(settings=settings)

    async def send(self, request: Request) -> Response | FairnessError:
        """Send the request once; return the response (dated, without secrets) or the error of the attempt."""
        name, limit = self._target.name, self._settings.timeout
        try:
            async with asyncio.timeout(limit) as time_limit:
                response = await self._target.ask(request)
        except FairnessError as error:
            failure = self.without_secrets(error)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError | GeneratorExit) and is_cancelled():
                raise
            if isinstance(error, TimeoutError) and time_limit.expired():
                cure = "If the target is slow, raise the ini fairness_timeout."
                failure = RequestFailed(
                    f"{name}: no answer within {limit:g} seconds. {cure}", retry=RetryReason.TIMEOUT
                )
            else:
                said = one_line(self._redact(str(error)))
                failure = RequestFailed(f"{name}: {type(error).__name__}: {said}")
        else:
            self._timer.record_answer()
            return self.recordable(response)
        self._timer.record_failure(failure)
        return failure

    def without_secrets(self, error: FairnessError) -> FairnessError:
        """Remove secrets from an error's message, remove its cause and traceback, and return the error."""
        error.args = (self._redact(str(error)),)
        error.__cause__, error.__suppress_context__ = None, True
        return error.with_traceback(None)

    def recordable(self, response: Response) -> Response:
        """Return the response with the current date and without secrets; content over the size limit is dropped."""
        redact = self._redact
        said = response.text + (response.tool_calls or "")
        too_long = len(said.encode("utf-8", "surrogatepass")) > self._settings.max_answer_bytes
        return replace(
            response,
            text="" if too_long else redact(response.text),
            tool_calls=None if too_long else response.tool_calls and redact(response.tool_calls),
            finish_reason=TOO_LONG if too_long else response.finish_reason,
            model=response.model and redact(response.model),
            fingerprint=response.fingerprint and redact(response.fingerprint),
            created=time.time(),
        )
