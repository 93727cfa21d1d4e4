"""Rendering of HTML templates. All values are escaped, and an undefined name is an error."""

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

REQUIRED_PACKAGES = ("jinja2", "vl_convert")


def require_extra() -> None:
    """Check that the packages for HTML reports are installed, before any request is sent.

    Raises:
        FairnessError: a package is missing; the message has the command that installs it.
    """
    # Deferred: only needed for HTML reports.
    from importlib.util import find_spec

    missing = [name for name in REQUIRED_PACKAGES if find_spec(name) is None]
    if missing:
        raise FairnessError(
            f"HTML reports need the extra `report` ({', '.join(missing)} not found). Install it: "
            "pip install 'pytest-fairness[report]'"
        )


def render(template: str, **values: Any) -> str:
    """Render a template with the style sheet inlined and its hash in the content security policy.

    Raises:
        FairnessError: the extra `report` is not installed.
    """
    require_extra()
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
    environment.globals |= {"svg": lambda drawn: Markup(drawn)}  # noqa: S704 - Vega escapes its texts
    return environment
