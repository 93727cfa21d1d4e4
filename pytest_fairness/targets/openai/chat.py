"""Conversation with a server that speaks OpenAI's chat completions, through the `openai` client."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import httpx2
import openai

from pytest_fairness.errors import FairnessError, RequestFailed, RetryReason, TargetError
from pytest_fairness.records import Json, Request, Response
from pytest_fairness.targets import embeddings
from pytest_fairness.targets.address import public_url
from pytest_fairness.targets.api_keys import hiding, is_distinct, secrets_of
from pytest_fairness.targets.http_client import BoundedClient, is_too_long, parsed, too_long
from pytest_fairness.targets.http_errors import Faults
from pytest_fairness.targets.one_line import identifier
from pytest_fairness.targets.openai import echoed_likelihoods

CUT_OFF = frozenset({"length", "max_tokens", "model_length"})
"""What servers call it when an answer is cut off at the limit of tokens; the first word is OpenAI's."""
NEW_LIMIT_NAME = "max_completion_tokens"
"""What newer models of OpenAI call `max_tokens`. They refuse the old name; other servers do not know the new one."""


class Chat:
    """One client for all requests: it keeps connections alive. It tries nothing again by itself; see `Sender`.

    Args:
        name: the target, for messages.
        model: sent with every request.
        base_url: up to `/v1`.
        key: sent as bearer token and never shown, or `None` for a server that needs none.
        timeout: seconds one try may take.
        max_bytes: most bytes of an answer's body.
        where: which settings name the endpoint and the key, for messages.
        trust_environment: whether proxies of the environment are used.
        setting: what names the model, for messages.
        serves: what the endpoint must be, for messages.
    """

    def __init__(
        self,
        name: str,
        model: str,
        *,
        base_url: str,
        key: str | None,
        timeout: float,
        max_bytes: int,
        where: str,
        trust_environment: bool = True,
        setting: str = "--fairness-target",
        serves: str = "chat endpoint",
    ) -> None:
        self._name, self._model, self._where = name, model, where
        self._setting, self._serves = setting, serves
        self._endpoint = public_url(base_url)
        secrets = [key or "", *secrets_of(base_url)]
        self._told = Faults(name, self._endpoint, where, hiding(secrets))
        self._hidden_in_answers = hiding(filter(is_distinct, secrets))
        self._takes_json_format = True
        self._asked_without_json: set[Request] = set()
        self._no_echo: str | None = None
        self._limit_name = "max_tokens"
        self._client = openai.AsyncOpenAI(
            api_key=key or "none",  # the client wants one
            base_url=base_url,
            timeout=timeout,
            max_retries=0,
            http_client=BoundedClient(
                max_bytes=max_bytes,
                timeout=timeout,
                limits=openai.DEFAULT_CONNECTION_LIMITS,
                follow_redirects=True,
                trust_env=trust_environment,
            ),
        )

    async def ask(
        self, request: Request, more: Mapping[str, Json] | None = None, *, json_format: bool = True
    ) -> Response:
        """Ask, with what sampling sets and nothing else.

        Args:
            request: what is asked.
            more: further fields of the body, for servers that understand them.
            json_format: whether an answer in JSON is asked for in the body too, not in the prompt alone.

        Raises:
            RequestFailed: this request got no answer, or one that is no chat completion.
            TargetError: no request can be answered: the key is refused or the model unknown.
        """
        system = [] if request.system is None else [{"role": "system", "content": request.system}]
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [*system, {"role": "user", "content": request.prompt}],
            **request.sampling.to_json(),
            **(more or {}),
        }
        in_json = json_format and request.answer_format == "json" and self._takes_json_format
        in_json = in_json and request not in self._asked_without_json
        with self._faults():
            try:
                response = await self._answer(await self._send(body, in_json), self._read)
            except openai.APIStatusError as error:
                if error.status_code == 400 and self._wants_new_name(error):
                    raise RequestFailed(str(self._fault(error)), retry=RetryReason.REPHRASED) from error
                if error.status_code in (400, 422) and in_json:
                    self._asked_without_json.add(request)
                    raise RequestFailed(str(self._fault(error)), retry=RetryReason.REPHRASED) from error
                raise
        if request in self._asked_without_json:
            # That it was the format which the server did not take is known only now.
            self._asked_without_json.discard(request)
            self._takes_json_format = False
        return response

    async def likelihood(self, request: Request) -> Response:
        """How likely the model finds a text: completions that echo it with log-probabilities, as vLLM's do.

        Raises:
            RequestFailed: the endpoint does not echo, or not this text; others of its answers are not concerned.
            TargetError: as in `ask`, but for an endpoint that offers no completions.
        """
        if self._no_echo is not None:
            raise RequestFailed(self._no_echo)
        with self._faults():
            try:
                raw = await self._client.completions.with_raw_response.create(
                    model=self._model, **echoed_likelihoods.body(request)
                )
            except (openai.NotFoundError, openai.BadRequestError, openai.UnprocessableEntityError) as error:
                said = self._told.quoted(_said(error))
                if error.status_code != 404 and not echoed_likelihoods.is_refused(said):
                    raise
                self._no_echo = (
                    f"{self._name}: {self._endpoint} offers no completions that echo log-probabilities (HTTP "
                    f"{error.status_code}: {said}), so it gives no likelihoods; vLLM's and transformers: targets do."
                )
                raise RequestFailed(self._no_echo) from error
        try:
            return await self._answer(
                raw.http_response, lambda answer: echoed_likelihoods.read(answer.content, request)
            )
        except ValueError as error:
            fault = f"{self._name}: {self._endpoint} did not echo the text: {error}"
            if isinstance(error, echoed_likelihoods.NoEcho):
                self._no_echo = f"{fault}, so it gives no likelihoods; vLLM's and transformers: targets do."
            raise RequestFailed(self._no_echo or fault) from error

    async def embeddings(self, texts: Sequence[str]) -> list[Response | FairnessError]:
        """Return the embeddings of texts, sent together; for each its vector, or the error for which there is none.

        Raises:
            RequestFailed: the texts got no answer, or one that is too long to be read.
            TargetError: as in `ask`.
        """
        with self._faults():
            # As numbers: not every compatible server knows base64, which the client would ask for.
            raw = await self._client.embeddings.with_raw_response.create(
                model=self._model, input=list(texts), encoding_format="float"
            )
        answer = raw.http_response
        if is_too_long(answer):
            raise RequestFailed(
                f"{self._name}: the answer of {self._endpoint} is longer than the ini's fairness_max_answer_bytes."
            )
        source = f"{self._name}: {self._endpoint}"
        return await parsed(lambda answer: embeddings.read(answer.content, len(texts), source), answer)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _answer(self, answer: httpx2.Response, read: Callable[[httpx2.Response], Response]) -> Response:
        return too_long() if is_too_long(answer) else await parsed(read, answer)

    async def _send(self, body: Mapping[str, Any], in_json: bool) -> httpx2.Response:
        fields = dict(body)
        if in_json:
            fields["response_format"] = {"type": "json_object"}
        if "max_tokens" in fields:
            fields[self._limit_name] = fields.pop("max_tokens")
        # The body as it came: the client's own types cost time, and break on what compatible servers leave out.
        raw = await self._client.chat.completions.with_raw_response.create(
            model=fields.pop("model"), messages=fields.pop("messages"), extra_body=fields
        )
        return raw.http_response

    def _wants_new_name(self, error: openai.APIStatusError) -> bool:
        """Whether the server wants `max_tokens` under its newer name, which it then gets from now on."""
        sent = json.loads(error.request.content)
        if "max_tokens" not in sent or NEW_LIMIT_NAME not in error.message:
            return False
        self._limit_name = NEW_LIMIT_NAME
        return True

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """What the client raises, as errors that say what to do."""
        try:
            yield
        except openai.APIStatusError as error:
            raise self._fault(error) from error
        except openai.APITimeoutError as error:
            raise self._told.late(error.__cause__) from error
        except openai.APIConnectionError as error:
            raise self._told.lost(error.__cause__ or error) from error

    def _fault(self, error: openai.APIStatusError) -> RequestFailed | TargetError:
        status = error.status_code
        said = self._told.quoted(_said(error))
        match status:
            case 401 | 403:  # what the server says here often quotes the key
                return TargetError(
                    f"{self._name}: {self._endpoint} refuses the key (HTTP {status}). Check {self._where}."
                )
            case 404:
                return TargetError(
                    f"{self._name}: {self._endpoint} knows no model {self._model!r}, or is no {self._serves} (HTTP "
                    f"404: {said}). Check {self._setting} and {self._where}."
                )
            case 429 if getattr(error, "code", None) == "insufficient_quota":
                return TargetError(f"{self._name}: the account's quota is used up (HTTP 429: {said}).")
            case _:
                return self._told.of_status(status, error.response.headers, _said(error))

    def _read(self, answer: httpx2.Response) -> Response:
        content = answer.content
        try:
            completion = json.loads(content)
            choice = completion["choices"][0]
            message = choice["message"]
            text, refusal, reason = _joined(message.get("content")), message.get("refusal"), choice.get("finish_reason")
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            shown = self._told.quoted(content.decode("utf-8", "replace"), 120)
            raise RequestFailed(
                f"{self._name}: {self._endpoint} answered no chat completion: {shown!r}", retry=RetryReason.TRANSIENT
            ) from error
        if refusal:
            text, reason = text or str(refusal), "refusal"
        elif text is None and reason == "content_filter":
            text = ""
        if text is None:
            raise RequestFailed(f"{self._name}: {self._endpoint} answered without text (finish_reason {reason!r}).")
        if isinstance(reason, str) and reason.casefold() in CUT_OFF:
            reason = "length"
        usage = completion.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        return Response(
            self._hidden_in_answers(text),
            finish_reason=reason if isinstance(reason, str) else None,
            prompt_tokens=_count(usage.get("prompt_tokens")),
            completion_tokens=_count(usage.get("completion_tokens")),
            model=identifier(completion.get("model")),
            fingerprint=identifier(completion.get("system_fingerprint")),
        )


def _joined(content: Json) -> str | None:
    """A message's content, which some servers give as a list of parts."""
    if isinstance(content, list):
        texts = [part.get("text") if isinstance(part, dict) else part for part in content]
        found = [text for text in texts if isinstance(text, str)]
        return "".join(found) if found else None
    return content if isinstance(content, str) else None


def _said(error: openai.APIStatusError) -> str:
    body = error.body
    if isinstance(body, dict) and isinstance(body.get("message"), str):
        return str(body["message"])
    return error.response.text


def _count(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
