"""Options that follow the name of a target behind an API: its own address, and the variable of its key."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_fairness.errors import TargetError
from pytest_fairness.targets.web.address import is_web_address

BASE_URL, API_KEY_ENV = "base_url", "api_key_env"
"""Names of the options: the address of the API, and the environment variable of the key."""
OPTIONS = (BASE_URL, API_KEY_ENV)


def parse(prefix: str, text: str) -> tuple[str, Mapping[str, str]]:
    """Return the model, and the values of the options by name.

    Args:
        prefix: prefix of the target.
        text: the part of the target after the prefix and its colon, `MODEL [NAME=VALUE …]`.

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
