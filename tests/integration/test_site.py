"""The documentation as a site: it is built without a warning, and its pages need nothing from elsewhere."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOADED = re.compile(r"""<(?:script|img|iframe|link|source)\b[^>]*?\b(?:src|href)=["']?((?:https?:)?//[^\s"'>]+)""")
IMPORTED = re.compile(r"""(?:@import|url\()\s*["']?((?:https?:)?//[^\s"')]+)""")


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    pytest.importorskip("zensical", reason="needs the extra `docs`")
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    return tmp_path


def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(copy: Path) -> None:
    built = build(copy)
    assert built.returncode == 0, built.stdout + built.stderr
    site = copy / "site"
    pages = {page.relative_to(site): page.read_text("utf-8") for page in site.rglob("*.html")}
    docs = ROOT / "docs"
    assert {page.relative_to(docs).with_suffix(".html") for page in docs.rglob("*.md")} <= pages.keys()
    for name, text in pages.items():
        assert not [place for place in LOADED.findall(text) if place != "https://zensical.org/"], name
    for sheet in site.rglob("*.css"):
        assert not IMPORTED.findall(sheet.read_text("utf-8")), sheet
    assert "torque" in (site / "search.json").read_text("utf-8")


def test_a_link_that_leads_nowhere_is_a_failure(copy: Path) -> None:
    with (copy / "docs" / "index.md").open("a", encoding="utf-8") as page:
        page.write("\nSee [this](how-to/ci.md#nothing-of-this-name).\n")
    assert build(copy).returncode != 0
