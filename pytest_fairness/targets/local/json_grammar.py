"""Answers in JSON from a model too small to write it unaided: the grammar that it is held to, and the way back.

A grammar cannot demand a number of entries of a map whose keys it does not know. So the model writes a list of named
descriptions, and the list is folded into the map that the prompt asked for.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

from pytest_fairness.records import Request, Response

TOKENS_PER_ENTRY = 64
"""About what one entry of full length takes, punctuation included."""
MOST_ENTRIES = 10
FEWEST_ENTRIES = 3
"""Where there is room for as many."""
NAME_LENGTH = 40
DESCRIPTION_LENGTH = 160
"""Characters, at most; without a limit, a small model that has lost its thread never ends an entry."""

_ENTRY = re.compile(r'\{"name": "(?P<name>[^"]*)", "description": "(?P<description>[^"]*)("\})?')


def grammar(request: Request) -> str:
    """The grammar (GBNF) of an answer: a list of as many entries as fit into the request's `max_tokens`."""
    room = request.sampling.max_tokens
    most = MOST_ENTRIES if room is None else min(MOST_ENTRIES, max(1, room // TOKENS_PER_ENTRY))
    fewest = min(FEWEST_ENTRIES, most)
    return "\n".join(
        [
            f'root ::= "[" entry (", " entry){{{fewest - 1},{most - 1}}} "]"',
            r'entry ::= "{\"name\": \"" name "\", \"description\": \"" description "\"}"',
            rf"name ::= letter character{{2,{NAME_LENGTH - 1}}}",
            rf"description ::= letter character{{10,{DESCRIPTION_LENGTH - 1}}}",
            r"letter ::= [A-Za-z]",
            # Neither quotes nor backslashes, so that what is between two quotes is the text itself.
            r'character ::= [^"\\\x00-\x1f\x7f]',
        ]
    )


def folded(response: Response) -> Response:
    """The response with its list as a JSON map, name to description; text that is no such list stays as it is.

    Descriptions of equal names are joined, so that no text is lost. Of a list that was cut off, whatever is there of
    its last description counts.
    """
    entries: dict[str, str] = {}
    for entry in _ENTRY.finditer(response.text):
        name, description = entry["name"].strip(), entry["description"].strip()
        entries[name] = f"{entries[name]} {description}".strip() if name in entries else description
    return replace(response, text=json.dumps(entries, ensure_ascii=False, indent=1)) if entries else response
