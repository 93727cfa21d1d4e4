"""What the plugin costs who does not use it: nothing is imported for it at pytest's start."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.projects import LOADED, PLUGINS

RUN = """
import json, sys
import pytest
code = pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[2:]])
with open(sys.argv[1], "w") as file:
    json.dump({"code": code, "modules": sorted(sys.modules)}, file)
"""


def modules_after(folder: Path, *arguments: str) -> set[str]:
    """Names of all modules in a fresh process after pytest ran there."""
    out = folder / "modules.json"
    # Other plugins import what they like.
    others = ("randomly", "hypothesispytest", "xdist", "xdist.looponfail", "timeout", "anyio", "platformdirs")
    off = [word for name in others for word in ("-p", f"no:{name}")]
    command = [sys.executable, "-c", RUN, str(out), *off, *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)
    result = json.loads(out.read_text())
    assert result["code"] == 0
    return set(result["modules"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with a test, a probe, and a test that is marked."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_own.py").write_text(
        "import pytest\ndef test_a(): pass\n@pytest.mark.fairness\ndef test_b(llm_client, fairness_check): pass\n"
        "def test_c(corpus_generator): pass\n"
    )
    (tmp_path / "probes").mkdir()
    (tmp_path / "probes/one.yaml").write_text("kind: generation\n")
    return tmp_path


def test_without_the_flag_nothing_is_imported_beyond_what_pytest_imports(folder: Path) -> None:
    without = modules_after(folder, "-p", "no:fairness", "-k", "test_a")
    present = modules_after(folder)
    added = present - without
    assert added == {
        "pytest_fairness",
        "pytest_fairness.hookspecs",
        "pytest_fairness.option_types",
        "pytest_fairness.options",
        "pytest_fairness.plugin",
        "pytest_fairness.version",
    }


def test_with_the_flag_no_optional_package_is_imported_to_collect(folder: Path) -> None:
    present = modules_after(folder, "--fairness", "--collect-only", "test_own.py")
    heavy = ("torch", "xllamacpp", "sklearn", "transformers", "pandas", "jinja2")
    assert not [name for name in present if name.split(".")[0] in heavy]


@pytest.mark.slow
def test_what_is_measured_already_is_looked_up_without_the_packages_that_measure_and_ask(
    pytester: pytest.Pytester,
) -> None:
    folder = pytester.path
    (folder / "pytest.ini").write_text("[pytest]\nfairness_target = python:app:answer\nfairness_target_version = 1\n")
    # One answer is missing, so that the groups' shares of missing answers differ and are tested.
    (folder / "app.py").write_text(
        "import itertools, random\nnumbers = itertools.count()\n"
        "def answer(prompt):\n"
        "    number = next(numbers)\n"
        "    if number == 4: return \"I'm sorry, but I can't help with that.\"\n"
        "    words = 'a calm keen kind clever friend of all'.split()\n"
        "    return ' '.join(random.Random(number).choices(words, k=20))\n"
    )
    (folder / "probes").mkdir()
    (folder / "probes" / "one.yaml").write_text(
        "kind: generation\nprompt: Praise {who}.\naxes: {who: {unmarked: Joseph, marked: [Kelly]}}\ntrials: 12\n"
        "audits: {jsd: {tolerance: 1}, svm: {tolerance: 1}, refusals: }\n"
    )
    assert pytester.runpytest_inprocess(*PLUGINS, "--fairness-rebaseline", plugins=LOADED).ret == 0
    assert pytester.runpytest_inprocess(*PLUGINS, "--fairness", plugins=LOADED).ret == 0  # measures the comparison
    again = modules_after(folder, "--fairness", "--fairness-report", "report.md")
    assert {"sklearn", "scipy.stats"} <= sys.modules.keys(), "the names of packages that measure"
    heavy = ("sklearn", "scipy.stats", "aiohttp", "httpx2", "pandas", "matplotlib", "psycopg")
    assert [name for name in heavy if name in again] == []
    assert not [name for name in again if name.startswith("pytest_fairness.reports.html")]


def test_the_public_names_are_there_when_asked_for() -> None:
    import pytest_fairness

    assert {"Audited", "Corpus", "Target", "__version__", "audit"} <= {*pytest_fairness.__all__}
    assert dir(pytest_fairness) == pytest_fairness.__all__
    for name in pytest_fairness.__all__:
        assert getattr(pytest_fairness, name)
    with pytest.raises(AttributeError, match="nothing"):
        _ = pytest_fairness.nothing
