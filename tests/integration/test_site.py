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


@pytest.mark.parametrize(("part", "failures"), [("one-part", 0), ("nothing-of-this-name", 1)])
def test_a_link_that_leads_nowhere_is_a_failure(tmp_path: Path, part: str, failures: int) -> None:
    pytest.importorskip("zensical", reason="needs the extra `docs`")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# First\n\nSee [this](other.md#{part}).\n", "utf-8")
    (tmp_path / "docs" / "other.md").write_text("# Other\n\n## One part\n\nText.\n", "utf-8")
    settings = (ROOT / "zensical.toml").read_text("utf-8")
    (tmp_path / "zensical.toml").write_text(re.sub(r"^nav = \[.*?^\]\n", "", settings, flags=re.DOTALL | re.MULTILINE))
    built = build(tmp_path)
    assert min(built.returncode, 1) == failures, built.stdout + built.stderr
