"""Templates filled in: everything is escaped, and a name that is missing is an error."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from pytest_fairness.errors import FairnessError
from pytest_fairness.reports.html import filters

if TYPE_CHECKING:
    from jinja2 import Environment

NEEDS = ("jinja2", "vl_convert")


def require() -> None:
    """See that what HTML pages are made with is there, before anything is asked or paid for.

    Raises:
        FairnessError: it is not; the message has the command that installs it.
    """
    # Deferred, as `importlib.util` is only needed where a page is asked for.
    from importlib.util import find_spec

    missing = [name for name in NEEDS if find_spec(name) is None]
    if missing:
        raise FairnessError(
            f"HTML reports need the extra `report` ({', '.join(missing)} not found): "
            "pip install 'pytest-fairness[report]'"
        )


def render(template: str, **values: Any) -> str:
    """A page of `templates/`, with the style sheet inlined and its hash in the page's security policy.

    Raises:
        FairnessError: the extra is missing.
    """
    require()
    environment = _environment()
    style = (files("pytest_fairness.reports.html") / "templates" / "style.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return environment.get_template(template).render(style=style, style_hash=digest, **values)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("pytest_fairness.reports.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": filters.number,
        "cell": filters.cell,
        "signed": filters.signed,
        "plain": filters.plain,
    }
    environment.globals |= {"svg": lambda drawn: Markup(drawn)}  # noqa: S704 - by Vega, which escapes what it writes
    return environment
