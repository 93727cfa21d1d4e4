"""Rendering of HTML templates. All values are escaped, and an undefined name is an error."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from pytest_fairness.errors import FairnessError
from pytest_fairness.reports.html import filters
from pytest_fairness.reports.items.report_items import change_suffix, grown_words

if TYPE_CHECKING:
    from jinja2 import Environment

REQUIRED_PACKAGES = ("jinja2", "vl_convert")
INLINED = {"style": "style.css", "script": "script.js"}


def require_extra() -> None:
    """Raise an error if a package for HTML reports is not installed; called before any request is sent.

    Raises:
        FairnessError: a package is missing; the message has the command that installs the package.
    """
    # Deferred: only needed for HTML reports.
    from importlib.util import find_spec

    missing = [name for name in REQUIRED_PACKAGES if find_spec(name) is None]
    if missing:
        raise FairnessError(
            f"HTML reports need the extra `report` ({', '.join(missing)} not found). Install it: "
            'pip install "pytest-fairness[report]"'
        )


def render(template: str, **values: Any) -> str:
    """Return the page of a template, with the style sheet and the script inlined.

    The content security policy of the page contains the hashes of the style sheet and of the script.

    Raises:
        FairnessError: the extra `report` is not installed.
    """
    require_extra()
    folder = files("pytest_fairness.reports.html") / "templates"
    inlined = {name: (folder / file).read_text("utf-8") for name, file in INLINED.items()}
    hashes = {name: _csp_hash(text) for name, text in inlined.items()}
    return _environment().get_template(template).render(hashes=hashes, **inlined, **values)


def _csp_hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


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
        "duration": filters.duration,
        "signed": filters.signed,
        "plain": filters.plain,
        "change_suffix": change_suffix,
        "grown_words": grown_words,
    }
    # Used only for files of this package, and for charts, in which Vega escapes all texts.
    environment.globals["trusted"] = lambda text: Markup(text)  # noqa: S704 - see above
    return environment
