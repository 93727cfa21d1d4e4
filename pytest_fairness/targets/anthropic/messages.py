"""Conversation with Anthropic's Messages API, through the `anthropic` client."""

from __future__ import annotations

import json
from collections.abc import Mapping

import anthropic
import httpx2

from pytest_fairness.errors import RequestFailed, RetryReason, TargetError
from pytest_fairness.records import Json, Request, Response
from pytest_fairness.targets.address import public_url
from pytest_fairness.targets.api_keys import hiding, is_distinct, secrets_of
from pytest_fairness.targets.http_client import BoundedClient, is_too_long, parsed, too_long
from pytest_fairness.targets.http_errors import Faults
from pytest_fairness.targets.one_line import identifier

MAX_TOKENS = 4096
"""Most tokens of an answer where a probe does not say: the API wants a limit, and every model of it allows this one."""
DEFAULT = 1.0
"""Of temperature and top_p: the same as not to send them."""
DRAWING_VERSION = "2023-06-01"
"""The last version of the API that takes a temperature; later ones refuse it for every model."""
REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
"""The API's stop reasons as `Response` names them; others stay as they are."""


class Messages:
    """One client for all requests. It tries nothing again by itself; see `Sender`.

    Args:
        name: the target, for messages.
        model: sent with every request.
        base_url: of the API.
        key: sent with every request and never shown.
        timeout: seconds one try may take.
        max_bytes: most bytes of an answer's body.
    """

    def __init__(self, name: str, model: str, *, base_url: str, key: str, timeout: float, max_bytes: int) -> None:
        self._name, self._model = name, model
        self._only_defaults = False
        self._endpoint = public_url(base_url)
        secrets = [key, *secrets_of(base_url)]
        self._told = Faults(name, self._endpoint, "ANTHROPIC_BASE_URL", hiding(secrets))
        self._hidden_in_answers = hiding(filter(is_distinct, secrets))
        self._client = anthropic.AsyncAnthropic(
            api_key=key,
            base_url=base_url,
            timeout=timeout,
            max_retries=0,
            http_client=BoundedClient(
                max_bytes=max_bytes,
                timeout=timeout,
                limits=anthropic.DEFAULT_CONNECTION_LIMITS,
                follow_redirects=True,
            ),
        )

    async def ask(self, request: Request) -> Response:
        """Ask, with what sampling sets; the API knows no seed, and always wants a limit.

        A temperature and `top_p` of 1 are left out for models that take none, as they mean the same there.

        Raises:
            RequestFailed: this request got no answer, or one that is no message.
            TargetError: no request can be answered: the key is refused, the model unknown, or there is no credit.
        """
        sampling = request.sampling
        drawn = (("temperature", sampling.temperature), ("top_p", sampling.top_p))
        drawing = {name: value for name, value in drawn if value is not None}
        if self._only_defaults and set(drawing.values()) == {DEFAULT}:
            drawing = {}
        try:
            # The body as it came: a type of content that this SDK does not know yet is no reason to fail.
            raw = await self._client.messages.with_raw_response.create(
                model=self._model,
                messages=[{"role": "user", "content": request.prompt}],
                max_tokens=MAX_TOKENS if sampling.max_tokens is None else sampling.max_tokens,
                system=anthropic.omit if request.system is None else request.system,
                extra_body=drawing,
                extra_headers={"anthropic-version": DRAWING_VERSION} if drawing else None,
            )
        except anthropic.BadRequestError as error:
            if drawing and any(name in _said(error) for name in drawing):
                raise self._undrawn(error, drawing) from error
            raise self._fault(error) from error
        except anthropic.APIStatusError as error:
            raise self._fault(error) from error
        except anthropic.APITimeoutError as error:
            raise self._told.late(error.__cause__) from error
        except anthropic.APIConnectionError as error:
            raise self._told.lost(error.__cause__ or error) from error
        answer = raw.http_response
        return too_long() if is_too_long(answer) else await parsed(self._read, answer)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _undrawn(self, error: anthropic.BadRequestError, drawing: Mapping[str, float]) -> RequestFailed:
        """What the model says to a temperature: newer ones take none, and draw as if it were 1."""
        said = self._told.quoted(_said(error))
        if set(drawing.values()) == {DEFAULT}:
            self._only_defaults = True
            return RequestFailed(f"{self._name}: HTTP 400 from {self._endpoint}: {said}", retry=RetryReason.REPHRASED)
        asked = " and ".join(f"{name} {value:g}" for name, value in drawing.items())
        return RequestFailed(
            f"{self._name} does not take {asked} (HTTP 400: {said}). Models that draw in their own way take 1, or "
            "nothing, in the probe's `sampling`."
        )

    def _fault(self, error: anthropic.APIStatusError) -> RequestFailed | TargetError:
        status, said = error.status_code, _said(error)
        match status:
            case 401 | 403:  # what the server says here may quote the key
                return TargetError(
                    f"{self._name}: {self._endpoint} refuses the key (HTTP {status}). Check ANTHROPIC_API_KEY."
                )
            case 404:
                return TargetError(
                    f"{self._name}: {self._endpoint} knows no model {self._model!r} (HTTP 404: "
                    f"{self._told.quoted(said)}). Check --fairness-target."
                )
            case 402 | 400 if status == 402 or "credit balance" in said:
                return TargetError(
                    f"{self._name}: the account has no credit (HTTP {status}: {self._told.quoted(said)})."
                )
            case _:
                return self._told.of_status(status, error.response.headers, said)

    def _read(self, answer: httpx2.Response) -> Response:
        content = answer.content
        try:
            message = json.loads(content)
            parts, reason, usage = message["content"], message.get("stop_reason"), message.get("usage")
            text = "".join(str(part["text"]) for part in parts if part["type"] == "text")
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            shown = self._told.quoted(content.decode("utf-8", "replace"), 120)
            raise RequestFailed(
                f"{self._name}: {self._endpoint} answered no message: {shown!r}", retry=RetryReason.TRANSIENT
            ) from error
        if not text and reason != "refusal":
            raise RequestFailed(f"{self._name}: {self._endpoint} answered without text (stop_reason {reason!r}).")
        usage = usage if isinstance(usage, dict) else {}
        return Response(
            self._hidden_in_answers(text),
            finish_reason=REASONS.get(reason, reason) if isinstance(reason, str) else None,
            prompt_tokens=_count(usage.get("input_tokens")),
            completion_tokens=_count(usage.get("output_tokens")),
            model=identifier(message.get("model")),
        )


def _said(error: anthropic.APIStatusError) -> str:
    body = error.body
    inner = body.get("error") if isinstance(body, dict) else None
    if isinstance(inner, dict) and isinstance(inner.get("message"), str):
        return str(inner["message"])
    return error.response.text


def _count(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
