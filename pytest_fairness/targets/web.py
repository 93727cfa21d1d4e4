"""Code that all targets on web servers share: addresses, API keys, headers, options after a target's name."""

from __future__ import annotations

import base64
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar
from urllib.parse import quote, quote_plus, unquote, urlsplit, urlunsplit

from pytest_fairness.errors import TargetError
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Request, Response
from pytest_fairness.targets.base import versioned

# Base class of the targets that are models behind an API: OpenAI's, Anthropic's, or a compatible one.

PROVIDERS = (".openai.com", ".anthropic.com", ".openai.azure.com", ".services.ai.azure.com", "openrouter.ai")
"""Ends of the host names at which a name of a model means the same model for everybody."""
PULL_REQUEST = (
    "CI_MERGE_REQUEST_IID", "SYSTEM_PULLREQUEST_PULLREQUESTID", "CIRCLE_PULL_REQUEST", "BITBUCKET_PR_ID", "CHANGE_ID",
)  # fmt: skip
"""Environment variables that CI services (GitLab, Azure, CircleCI, Bitbucket, Jenkins) set for a proposed change."""
OF_STREAMS = re.compile(r"\bstream(ed|ing)?\b", re.IGNORECASE)
"""Words of a server's error that it answers only as a stream of events."""


def in_pull_request() -> bool:
    """Return whether a CI service runs this process for a pull request, a merge request or a merge queue."""
    event = os.environ.get("GITHUB_EVENT_NAME", "")
    return event.startswith(("pull_request", "merge_group")) or any(map(os.environ.get, PULL_REQUEST))


class Client(Protocol):
    async def ask(self, request: Request) -> Response:
        """Send one request once; see `Target.ask`."""

    async def close(self) -> None:
        """Close the connections."""


ClientT = TypeVar("ClientT", bound=Client)


class ApiTarget(ABC, Generic[ClientT]):
    """Model behind an API; the target's own options come before the settings of all targets of the prefix.

    The first of `key_variables` that is set is used. `url_settings` are names of the settings for the address, and an
    example address, for messages.

    Raises:
        TargetError: the address or a header is not valid.
    """

    concurrency: int | None = None

    def __init__(
        self,
        prefix: str,
        model: str,
        *,
        default_url: str,
        base_url: str,
        url_settings: tuple[str, str],
        key_variables: tuple[str, ...],
        settings: RunSettings,
    ) -> None:
        self.name = f"{prefix}:{model}"
        own_url, own_key = (settings.target_options.get(name) for name in (BASE_URL, API_KEY_ENV))
        base_url = own_url or base_url or default_url
        self._model, self._base_url = model, base_url
        self._is_default_address = base_url == default_url
        self._key_variables = (own_key,) if own_key else key_variables
        self._needs_key = bool(own_key)
        self._headers = Headers(settings.api_headers, "fairness_api_headers", self.name)
        self._timeout, self._max_bytes = settings.timeout, settings.max_answer_bytes
        self._client: ClientT | None = None
        self._url_setting = f"{BASE_URL}=… of the target" if own_url else url_settings[0]
        if not is_web_address(base_url):
            example = url_settings[1]
            raise TargetError(
                f"{self.name}: the value of {self._url_setting} is not an address; write it like {example}."
            )
        self.address = public_url(base_url)
        # The gateway or application behind another address may change with each commit under the same name.
        self.reusable = settings.target_version is not None or self._is_providers_own or not in_pull_request()
        self.identity = versioned(f"{self.name} at {self.address}", settings.target_version)

    def _key(self) -> tuple[str, str]:
        """Return the API key and the name of its environment variable; an empty key for a server that needs none."""
        for variable in self._key_variables:
            if key := key_of(self.name, variable):
                return key, variable
        if self._needs_key:
            raise TargetError(f"{self.name} needs a key: {self._cure_of_missing_key()}.")
        return "", self._key_variables[0]

    def _cure_of_missing_key(self) -> str:
        return f"set the environment variable {' or '.join(self._key_variables)}"

    @abstractmethod
    def _connect(self) -> ClientT:
        """Return a client; import its module only here, because the import takes time."""

    @property
    def _setting_names(self) -> str:
        """Return the settings for the address, unless it is the provider's own, and for the API key, for messages."""
        key = self._key_variables[0]
        return key if self._is_default_address else f"{self._url_setting} and {key}"

    @property
    def _is_providers_own(self) -> bool:
        host = urlsplit(self._base_url).hostname or ""
        return self._is_default_address or host.endswith(PROVIDERS)

    def _endpoint(self) -> Endpoint:
        key, variable = self._key()
        references = References(self.name)
        headers = self._headers.filled(references)
        return Endpoint(
            name=self.name,
            model=self._model,
            base_url=self._base_url,
            key=key,
            timeout=self._timeout,
            max_bytes=self._max_bytes,
            where=self._setting_names,
            key_name=variable,
            headers=headers,
            secrets=tuple(references.secrets.values()),
        )

    def check(self) -> None:
        self._endpoint()

    async def open(self) -> None:
        self.check()
        self._client = self._connect()

    async def ask(self, request: Request) -> Response:
        return await self._opened().ask(request)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    def _opened(self) -> ClientT:
        if self._client is None:
            raise RuntimeError("the target is not open: call `open` before `ask`")
        return self._client


def model_of(prefix: str, rest: str | None) -> str:
    """Return the model after the prefix and its colon; raise `TargetError` if there is none."""
    if not rest:
        raise TargetError(f"{prefix!r} names no model; write {prefix}:MODEL (--fairness-target).")
    return rest


# Options that follow the name of a target behind an API: its own address, and the variable of its key.

BASE_URL, API_KEY_ENV = "base_url", "api_key_env"
"""Names of the options: the address of the API, and the environment variable of the key."""
OPTIONS = (BASE_URL, API_KEY_ENV)


def parse_target_options(prefix: str, text: str) -> tuple[str, Mapping[str, str]]:
    """Return the model, and the values of the options by name, of `MODEL [NAME=VALUE …]`.

    Raises:
        TargetError: an option is unknown, has no valid value or occurs twice.
    """
    words = text.split()
    places = [at for at, word in enumerate(words) if "=" in word and (at > 0 or word.partition("=")[0] in OPTIONS)]
    end = places[0] if places else len(words)
    target = f"{prefix}:{' '.join(words[:end])}"
    options: dict[str, str] = {}
    for word in words[end:]:
        name, _, value = word.partition("=")
        if name not in OPTIONS:
            raise TargetError(
                f"unknown option {name!r} after the target {target} (--fairness-target). Known options: "
                f"{BASE_URL}=ADDRESS and {API_KEY_ENV}=VARIABLE."
            )
        if not value:
            raise TargetError(f"the option {name}= after the target {target} has no value; write {name}=VALUE.")
        if name in options:
            raise TargetError(f"the option {name}= occurs twice after the target {target}; remove one of the two.")
        options[name] = value
    if not is_web_address(options.get(BASE_URL, "http://localhost")):
        raise TargetError(
            f"{target}: the value of {BASE_URL}=… is not an address; write it like http://localhost:8000/v1."
        )
    variable = options.get(API_KEY_ENV, API_KEY_ENV)
    if not (variable.isascii() and variable.isidentifier()):  # perhaps the key itself: do not show it
        raise TargetError(
            f"{target}: the value of {API_KEY_ENV}=… is not the name of an environment variable; write the name of the "
            f"variable that holds the key, such as {API_KEY_ENV}=OTHER_API_KEY."
        )
    return " ".join(words[:end]), options


# Description of a model behind an API.


@dataclass(frozen=True)
class Endpoint:
    """Model behind an API, with the settings of the connection to its server.

    Attributes:
        model: name of the model, which every request contains.
        key: the API key; an empty text for a server that needs none.
        timeout: time limit of one attempt in seconds.
        max_bytes: maximum number of bytes of a response's body.
        key_name: name of the environment variable of the key; `None` if the server takes no key.
        trust_environment: whether to use the proxies that environment variables set.
        secrets: values in `headers` that must appear in no message.
    """

    name: str
    model: str
    base_url: str
    key: str = field(repr=False)
    timeout: float
    max_bytes: int
    where: str
    key_name: str | None = None
    trust_environment: bool = True
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


# HTTP headers that users set, and references `${NAME}` to environment variables in them.

_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*:\s*(.*)")


class References:
    """Values of environment variables that take the place of references `${NAME}`; those used are in `secrets`."""

    def __init__(self, target: str) -> None:
        self.secrets: dict[str, str] = {}
        self._target = target

    def filled(self, text: str, where: str, encode: Callable[[str], str] = str) -> str:
        """Replace the references in a text by encoded values; raise `TargetError` for a variable that is not set.

        `where` is the setting that contains the text, for messages.
        """
        return REFERENCE.sub(lambda match: encode(self._value(match[1], where)), text)

    def _value(self, name: str, where: str) -> str:
        value = os.environ.get(name, "").strip()
        if not value:
            raise TargetError(
                f"{self._target}: {where} names the environment variable {name}, which is not set. Set the variable."
            )
        self.secrets[name] = value
        return value


class Headers:
    """Headers that a setting adds to every request, as lines `Name: value`, whose values may refer to `${NAME}`.

    Raises:
        TargetError: a line is not of the form `Name: value`.
    """

    def __init__(self, lines: Iterable[str], setting: str, target: str) -> None:
        self._setting, self._target = setting, target
        self._written = [self._parsed(line) for line in lines]

    def __bool__(self) -> bool:
        return bool(self._written)

    def filled(self, references: References) -> dict[str, str]:
        """Return the headers with the values of environment variables.

        Raises:
            TargetError: a variable is not set, or a header has characters that cannot be sent.
        """
        headers = {name: references.filled(value, self._setting) for name, value in self._written}
        for name, value in headers.items():
            if not (value.isascii() and value.isprintable()):
                raise TargetError(
                    f"{self._target}: the header {name} has characters that cannot be sent, as they are not printable "
                    "ASCII. Copy its value again."
                )
        return headers

    def _parsed(self, line: str) -> tuple[str, str]:
        match = _HEADER.fullmatch(line.strip())
        if match is None:
            # The line is left out, because it may contain a key.
            raise TargetError(
                f"{self._target}: a line of {self._setting} is not of the form `Name: value`. Correct it."
            )
        return match[1], match[2].strip()


# API keys in environment variables, and their removal from texts.

SHORTEST = 8
"""Minimum length at which a key with only letters is removed from texts; shorter keys, such as `none`, may be ordinary
words."""
SHORTEST_MIXED = 4
"""Minimum length at which a key with other characters than letters is removed from texts."""


def key_of(target: str, variable: str) -> str:
    """Return the key in an environment variable; an empty text if the variable is not set.

    Raises:
        TargetError: the key has characters that cannot be sent in a header.
    """
    key = os.environ.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise TargetError(
            f"{target}: the key in the environment variable {variable} has characters that cannot be sent, as they are "
            "not printable ASCII. Copy the key again."
        )
    return key


def secrets_of(url: str) -> list[str]:
    """Return the secrets in an address, as written and decoded: login, password, and the values of the query."""
    parts = urlsplit(url)
    login = parts.netloc.rpartition("@")[0]
    values = [login, login.partition(":")[2], *(pair.partition("=")[2] for pair in parts.query.split("&"))]
    return [form for value in values if value for form in dict.fromkeys((value, unquote(value)))]


def forms_of(value: str) -> list[str]:
    """Return the forms in which a text may contain a secret: unchanged, or encoded for JSON, an address or base64."""
    quoted = [quote(value, safe=""), quote(value), quote_plus(value)]
    lower = [re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), text) for text in quoted]
    raw = value.encode("utf-8", "surrogatepass")
    encoded = [encode(raw).decode().rstrip("=") for encode in (base64.b64encode, base64.urlsafe_b64encode)]
    if len(raw) >= SHORTEST:  # as a part of a longer text, such as `user:password`, without the digits that it shares
        for before in (1, 2):
            for encode in (base64.b64encode, base64.urlsafe_b64encode):
                inner = encode(b"\0" * before + raw)[before + 1 : (before + len(raw)) * 4 // 3]
                encoded.append(inner.decode())
        encoded += [text[: len(raw) * 4 // 3] for text in encoded[:2]]
    written = [json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]]
    return list({value, *written, *quoted, *lower, *encoded})


def secret_remover(values: Iterable[str]) -> Callable[[str], str]:
    """Return a function that replaces these values, in all of their encoded forms, by `[key]` in a text."""
    forms = {form for value in values if value for form in forms_of(value)}
    if not forms:
        return str
    pattern = re.compile("|".join(map(re.escape, sorted(forms, key=len, reverse=True))))
    return lambda text: pattern.sub("[key]", text)


def is_distinct(value: str) -> bool:
    """Return whether a key is unlikely to be a word of ordinary text, so that it can be removed from texts."""
    return len(value) >= SHORTEST or (len(value) >= SHORTEST_MIXED and not value.isalpha())


# Functions that check addresses of servers, and remove secrets from addresses.

REFERENCE = re.compile(r"\$\{(\w+)\}")
"""Pattern of a reference `${NAME}` to an environment variable."""
_ADDRESS = re.compile(r"(https?://)(\S+)")


def public_url(url: str) -> str:
    """Return the address without user, password, query and final slash, so that it is safe to show and record."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))


def is_web_address(url: str) -> bool:
    """Return whether this is an `http` or `https` address with a host."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def public_address(text: str) -> str:
    """Return a text, such as the name of a target, without the secrets in the web addresses that it contains.

    The user, the password and the values in the query are removed; references to environment variables stay.
    """
    return _ADDRESS.sub(_without_secrets, text)


def _without_secrets(found: re.Match[str]) -> str:
    place, mark, query = found[2].partition("?")
    host, slash, path = place.partition("/")
    pairs = [pair.partition("=") for pair in query.partition("#")[0].split("&")]
    kept = "&".join(
        f"{key}={value if REFERENCE.fullmatch(value) else '…'}" if equals else "…" for key, equals, value in pairs
    )
    return f"{found[1]}{host.rpartition('@')[2]}{slash}{path}{mark}{kept if mark else ''}"
