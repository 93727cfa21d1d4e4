"""Messages of a service that is down, in place of answers: error pages, error objects, stack traces, outage texts.

Such a message is recognised by its form: HTML, a JSON object that reports an error, a stack trace, the prompt itself,
or the vocabulary of gateways, rate limits, quotas and maintenance in six languages. A message in other words has no
such form; see `relevance` for answers that do not depend on their prompts.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.resources import files
from itertools import chain, islice

from pytest_fairness.audits.base import AnyItem
from pytest_fairness.errors import FairnessError
from pytest_fairness.records import Answer, Answers, Concern, Json, Status

SERVICE_MESSAGES = "service_messages"

MESSAGES_SHARE = 0.05
"""Largest share of the answers of a group that may be messages of a service."""
FEWEST_MESSAGES = 2
"""A single message of a service raises no concern."""
MOST_WORDS = 70
"""Largest number of words of a text that is recognised by its vocabulary; a longer text may tell of an outage."""
FEWEST_SIGNS = 3
"""Smallest number of different signs in a text that is recognised by its vocabulary, unless one says it all."""
WAITING = ("later", "apology")
"""Signs that a text speaks to somebody who waits for an answer."""
OF_MACHINES = ("machine", "load")
"""Signs that a text speaks of a machine or of its visitors."""
SHORT_MESSAGE, FEWEST_SIGNS_OF_SHORT = 25, 2
"""Largest number of words of a text for which fewer signs are enough."""
MOST_TEXTS = 2_000
"""Of more answers, about so many are looked at, spread evenly."""
READ_CHARACTERS = 4_000
"""Number of characters of an answer that are read."""
FIRST_PROMPTS = 2_000
"""Largest number of prompts with which answers are compared."""
ECHO_WORDS = 12
"""Largest number of words that a service adds to the prompt that it repeats; at most one more than the prompt has."""
FEWEST_PROMPT_WORDS = 3
"""Smallest number of words of a prompt that is compared with its answer."""
QUOTED_CHARACTERS = 80
"""Number of characters of a message that the concern quotes."""

_HTML = re.compile(r"\s*(?:```(?:html|xml)?\s*)?<(?:!doctype html|html|head|body|title|\?xml)\b", re.IGNORECASE)
_TRACE = re.compile(
    r"traceback \(most recent call last\)|^\s*at [\w.$<>/]+ ?\([^()\n]*:\d+\)|^\s*file \"[^\"\n]+\", line \d+"
    r"|^(?:[a-z_]\w*[.:]+)+\w*(?:exception|error|fault)\b ?:|^goroutine \d+ \[|^panic: |^(?:php )?fatal error: "
    r"|^#\d+ +/?[\w./-]+\(\d+\)|\bstack ?trace\b|^thread '[^'\n]*' panicked at",
    re.MULTILINE,
)
_STATUS = re.compile(
    r"^\W*(?:http(?:/\d(?:\.\d)?)?|error|status|fehler|erreur|erro|errore|état http|stato|estado)[ :#-]*"
    r"(?:code |http )?[45]\d\d\b|^\W*[45]\d\d[ :-]+(?:service|bad|gateway|internal|too many|not found|forbidden"
    r"|unauthori[sz]ed|server)\b"
)
_LETTER = re.compile(
    r"\W*(?:dear|liebe[rs]?|sehr geehrte[rs]?|ch(?:er|ère)s?|querid[oa]s?|estimad[oa]s?|gentile|car[oa]|prezad[oa])\s+"
    r"(?!user|customer|visitor|nutzer|kund|besucher|client|utilisa|usuari|utente|visita)"
)
_WORDS = tomllib.loads(files(__package__).joinpath("service_messages.toml").read_text("utf-8"))


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(patterns)})")


_SAYS_ALL = _any_of(chain.from_iterable(_WORDS["says_all"].values()))
_SIGNS = {name: _any_of(patterns) for name, patterns in _WORDS["signs"].items()}
_FAILED = re.compile(r"false|fail(?:ed|ure)|error|errore|erreur|erro|fehler|unavailable|[45]\d\d", re.IGNORECASE)


def service_messages(item: AnyItem, answers: Answers) -> Concern | None:
    """Return a concern if more than 5 % of the answers of a group are messages of a service, else `None`.

    Refusals are left out. If more than half of all answers are such messages, there is no verdict at all.
    """
    prompts = _prompts_of(item)
    is_json = item.probe.reading.selection is not None or item.probe.reading.format == "calls"
    groups: defaultdict[str, list[tuple[Answer, str]]] = defaultdict(list)
    texts = [answer for answer in answers if answer.text and (answer.usable or answer.status is Status.UNREADABLE)]
    for answer in texts[:: -(-len(texts) // MOST_TEXTS) or 1]:
        sign = _echo(answer, prompts) or service_message(answer.said, is_json=is_json)
        groups[item.group_name(answer)].append((answer, sign))
    found = {name: [pair for pair in own if pair[1]] for name, own in groups.items()}
    number, total = sum(map(len, found.values())), sum(map(len, groups.values()))
    worst = max(groups, key=lambda name: len(found[name]) / len(groups[name]), default="")
    if number < FEWEST_MESSAGES or len(found[worst]) <= MESSAGES_SHARE * len(groups[worst]):
        return None
    answer, sign = found[worst][0]
    others = Counter(name for own in found.values() for _, name in own)
    named = sign if len(others) == 1 else f"{sign}, and others"
    text = " ".join(answer.said.split())
    where = f", {len(found[worst])} of {len(groups[worst])} for {worst}" if len(groups) > 1 else ""
    return Concern(
        SERVICE_MESSAGES,
        f"{number} of {total} answers{where}, look like messages of a service in place of answers ({named}: "
        f"{text[:QUOTED_CHARACTERS]!r}). Check that the target works, and ask again",
        withholds="verdict" if number > total / 2 else "pass",
    )


def _prompts_of(item: AnyItem) -> dict[frozenset[tuple[str, str]], str]:
    """Return the text of the first prompts of the item's probe by their labels; empty for recorded answers."""
    try:
        return {
            frozenset(prompt.labels.items()): _plain(prompt.request.prompt)
            for prompt in islice(item.probe.prompts(1), FIRST_PROMPTS)
        }
    except FairnessError:
        return {}


def _echo(answer: Answer, prompts: Mapping[frozenset[tuple[str, str]], str]) -> str:
    """Return "the prompt" if the answer is its own prompt with at most a few other words, else an empty text."""
    prompt = prompts.get(frozenset(answer.labels.items()), "")
    words = len(prompt.split())
    said = _plain(answer.said[:READ_CHARACTERS])
    if words < FEWEST_PROMPT_WORDS or prompt not in said or len(said.split()) > words + min(ECHO_WORDS, words + 1):
        return ""
    return "the prompt"


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


@lru_cache(maxsize=MOST_TEXTS)
def service_message(text: str, *, is_json: bool = False) -> str:
    """Return what shows that a text is a message of a service in place of an answer; empty if nothing shows it.

    Args:
        text: text of an answer.
        is_json: whether answers are JSON by design, such as `{"state": "error"}`; JSON then shows nothing.
    """
    beginning = text[:READ_CHARACTERS]
    if _HTML.match(beginning):
        return "an HTML page"
    if not is_json and _is_error_object(beginning):
        return "a JSON object that reports an error"
    beginning = beginning.casefold()
    if _TRACE.search(beginning):
        return "a stack trace"
    words = len(beginning.split())
    if words > MOST_WORDS:
        return ""
    if _STATUS.match(beginning) or _SAYS_ALL.search(beginning) or _has_signs(beginning, words):
        return "the words of an error message"
    return ""


def _has_signs(text: str, words: int) -> bool:
    """Return whether a casefolded text speaks of a machine to somebody who waits for an answer, and is no letter."""
    found = {name for name in WAITING if _SIGNS[name].search(text)}
    if not found or _LETTER.match(text):
        return False
    found |= {name for name, sign in _SIGNS.items() if sign.search(text)}
    needed = FEWEST_SIGNS_OF_SHORT if words <= SHORT_MESSAGE else FEWEST_SIGNS
    return not found.isdisjoint(OF_MACHINES) and len(found) >= needed


def _is_error_object(text: str) -> bool:
    start = text.strip().removeprefix("```json").removesuffix("```").strip()
    if not start.startswith(("{", "[")):
        return False
    try:
        return _reports_error(json.loads(start))
    except (ValueError, RecursionError):
        return False


def _reports_error(value: Json) -> bool:
    """Return whether a JSON value is an object, or a list of objects, with a key that reports an error."""
    if isinstance(value, list):
        return bool(value) and all(map(_reports_error, value))
    if not isinstance(value, Mapping):
        return False
    found = {str(key).casefold().replace("-", "_"): part for key, part in value.items()}
    if any(part not in (None, False, "", 0, [], {}) for key, part in found.items() if key in _WORDS["keys"]["error"]):
        return True
    return any(
        key in _WORDS["keys"]["state"] and _FAILED.fullmatch(str(part).strip()) is not None
        for key, part in found.items()
    ) or any(_reports_error(part) for part in found.values() if isinstance(part, Mapping))
