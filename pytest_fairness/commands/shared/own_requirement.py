"""Requirement with which another machine installs this copy of pytest-fairness."""

from __future__ import annotations

import json
from importlib import metadata

from pytest_fairness.targets.web.address import public_url

NAME = "pytest-fairness"
EXTRAS = "[local,report]"


def own_requirement() -> str | None:
    """Return the requirement with which pip installs this copy; `None` if other machines cannot install this copy.

    pip records in `direct_url.json` (PEP 610) the repository, archive or folder from which it installed the package. If
    there is no such file, pip installed the package from an index, and the requirement names the version.
    """
    distribution = metadata.distribution(NAME)
    text = distribution.read_text("direct_url.json")
    if not text:
        return f"{NAME}{EXTRAS}=={distribution.version}"
    source = json.loads(text)
    url, folder = source["url"], source.get("subdirectory")
    if not url.startswith(("https://", "http://", "ssh://")):
        return None
    # A user or password would be published with the workflow; `git@` in an address of SSH is neither.
    url = url if url.startswith("ssh://git@") else public_url(url)
    if (version := source.get("vcs_info")) is not None:
        url = f"{version['vcs']}+{url}@{version['commit_id']}"
    return f"{NAME}{EXTRAS} @ {url}{f'#subdirectory={folder}' if folder else ''}"
