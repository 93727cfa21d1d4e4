"""What the readme and the pages of `docs/` show is true: files are valid, links lead somewhere, commands run."""

import csv
import hashlib
import json
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree as ET

import pytest
from ruamel.yaml import YAML

from pytest_fairness import kinds, probes
from pytest_fairness.__main__ import main
from pytest_fairness.baselines.files import read_baseline
from pytest_fairness.errors import ProbeError
from pytest_fairness.extensions import Group
from pytest_fairness.options import REPLACED
from pytest_fairness.reports.files import CODE_QUALITY, SUFFIXES
from tests.support import hospital, processes
from tests.support.projects import LOADED, PLUGINS
from tests.support.servers import Body, ChatServer, Messages, echo_by_words

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
README = ROOT / "README.md"
TUTORIAL = DOCS / "tutorial" / "first-audit.md"
GUIDE = DOCS / "how-to" / "audit-a-model.md"
CI = DOCS / "how-to" / "ci.md"


def page_id(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `title` names the file whose content it is."""

    page: Path
    line: int
    language: str
    title: str | None
    text: str

    @property
    def id(self) -> str:
        return f"{page_id(self.page)}:{self.line}"


def blocks_of(page: Path) -> Iterator[Block]:
    text = page.read_text("utf-8")
    for fence in re.finditer(r'^```(\w*)(?: title="([^"]+)")?\n(.*?)^```$', text, re.MULTILINE | re.DOTALL):
        yield Block(page, text.count("\n", 0, fence.start()) + 1, fence[1], fence[2], fence[3])


BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def blocks(language: str) -> pytest.MarkDecorator:
    found = [block for block in BLOCKS if block.language == language]
    assert found
    return pytest.mark.parametrize("block", found, ids=lambda block: block.id)


def is_probe(text: str) -> bool:
    return re.search(r"^kind:", text, re.MULTILINE) is not None


def write(block: Block, folder: Path) -> None:
    assert block.title is not None
    path = folder / block.title
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.text, "utf-8")


def test_every_fence_is_closed() -> None:
    for page in PAGES:
        fences = len(re.findall(r"^```", page.read_text("utf-8"), re.MULTILINE))
        assert fences == 2 * len([block for block in BLOCKS if block.page == page]), page


@blocks("yaml")
def test_yaml(block: Block, tmp_path: Path) -> None:
    if is_probe(block.text):
        write(block, tmp_path)
        for other in BLOCKS:
            if other.page == block.page and other.language in ("csv", "toml") and other.title:
                write(other, tmp_path)
        probe = probes.load(tmp_path / (block.title or "probe.yaml"), kinds.schemas())
        for prompt in islice(probe.prompts(), 100):
            # Answers in baselines are parsed as current answers.
            stored = probe.reading.recorded_prompt(prompt.labels, prompt.trial)
            assert replace(stored, request=prompt.request) == prompt
            assert stored.request.answer_format == prompt.request.answer_format
    else:
        assert isinstance(YAML(typ="safe").load(block.text), dict)


@blocks("toml")
def test_toml(block: Block, pytestconfig: pytest.Config) -> None:
    content = tomllib.loads(block.text)
    for name in content.get("tool", {}).get("pytest", {}).get("ini_options", {}):
        pytestconfig.getini(name)
    groups = {f"pytest_fairness.{name}" for name in get_args(Group)}
    assert {*content.get("project", {}).get("entry-points", {})} <= groups


@blocks("json")
def test_json(block: Block, tmp_path: Path) -> None:
    data = json.loads(block.text)
    if "items" in data:
        (tmp_path / "products.json").write_text(block.text)
        assert read_baseline(tmp_path, "products") is not None


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text("utf-8")):
        if not target.startswith(("https://", "http://", "#")):
            assert (page.parent / target.partition("#")[0]).exists(), target


def test_the_message_that_the_guide_shows(tmp_path: Path) -> None:
    block = next(block for block in BLOCKS if block.page == GUIDE and block.language == "yaml")
    write(replace(block, text=block.text.replace("{tolerance", "{tolerence")), tmp_path)
    with pytest.raises(ProbeError) as raised:
        probes.load(tmp_path / str(block.title), kinds.schemas(), root=tmp_path)
    assert f"\n{raised.value}\n" in GUIDE.read_text("utf-8")


# The example of the readme


def example_of(page: Path) -> str:
    return next(block.text for block in BLOCKS if block.page == page and block.title == "probes/hospital.yaml")


def test_the_example_has_eight_lines_and_is_the_same_everywhere() -> None:
    example = (ROOT / "examples" / "hospital.yaml").read_text("utf-8")
    assert len(example.splitlines()) == 8
    assert example_of(README) == example_of(DOCS / "index.md") == example


def test_the_example_fails_as_its_picture_shows(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "90")
    write(next(block for block in BLOCKS if block.page == README and is_probe(block.text)), pytester.path)
    pytester.makeini("[pytest]\nfairness_target = python:tests.support.hospital:write\nfairness_concurrency = 1")
    monkeypatch.syspath_prepend(ROOT)
    for recorded, option in ((hospital.BEFORE, "--fairness-rebaseline"), (hospital.AFTER, "--fairness")):
        monkeypatch.setattr(hospital, "write", hospital.RecordedAnswers(recorded), raising=False)
        result = pytester.runpytest_inprocess(*PLUGINS, option, plugins=LOADED)
    assert result.ret == 1
    picture = ET.fromstring((DOCS / "images" / "terminal.svg").read_text("utf-8"))  # noqa: S314 - our own file
    parts = ("".join(element.itertext()).split() for element in picture.iter("{http://www.w3.org/2000/svg}text"))
    shown = [word for words in parts for word in words]
    assert shown[:3] == ["$", "pytest", "--fairness"]
    summary = result.stdout.str().rpartition("= fairness =")[2].replace("tests.support.hospital", "app").split()
    assert [word for word in shown[3:] if word not in summary] == []
    counts = [
        sum(
            re.search(rf"\b{word}\b", text, re.IGNORECASE) is not None
            for text in hospital.RecordedAnswers(run).texts[person]
        )
        for word, person in (("nurse", "woman"), ("nurse", "man"), ("dr", "man"), ("dr", "woman"))
        for run in (hospital.BEFORE, hospital.AFTER)
    ]
    said = " ".join(README.read_text("utf-8").split()).partition("the build fails: ")[2].partition("![")[0]
    assert [int(number) for number in re.findall(r"\d+", said) if number != "40"] == counts


# The two command lines of the readme


def command_after(marker: str) -> str:
    found = re.search(rf"^<!-- {marker} -->\n```bash\n(.*)\n```$", README.read_text("utf-8"), re.MULTILINE)
    assert found is not None
    return found[1]


def test_the_readme_starts_with_two_command_lines() -> None:
    lines = [line for block in BLOCKS if block.page == README for line in block.text.splitlines()]
    assert [line for line in lines if line.startswith("python3")] == [command_after("audit"), command_after("tests")]
    assert command_after("audit").endswith("&& .venv/bin/pytest --fairness probes")


@pytest.mark.skipif(sys.platform == "win32", reason="the script is for bash")
def test_ci_runs_the_command_of_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    line = re.search(r"^command=\$\((sed .*)\)$", script, re.MULTILINE)
    assert line is not None
    run = subprocess.run(["/bin/bash", "-c", line[1]], cwd=ROOT, check=True, capture_output=True, text=True)
    assert run.stdout.splitlines() == [command_after("tests")]
    subprocess.run(["/bin/bash", "-n", ".ci/run"], cwd=ROOT, check=True)


# Every other command

HARMLESS = (
    "python3.11 -m venv",
    "source .venv/bin/activate",
    ".venv/bin/pip install",
    "pip install",
    "git add ",
    "jq ",
)
"""Beginnings of commands that are run elsewhere, or that need programs which are not part of this project."""

PRODUCTS = """\
kind: generation
prompt: List three products for a {race} customer.
axes:
  race: {unmarked: White, marked: [Black]}
trials: 15
audits:
  jsd: {}
"""
"""The probe that pages speak of which show none of their own."""

APPLICATION = """\
import random

def recommend(prompt):
    return " ".join(random.choices(["lamp", "chair", "soap", "tea", "coat", "pen", "book", "bag"], k=30))
"""
"""The application that pages speak of, and show only the head of."""

SERVER = "http://localhost:8000/v1"
"""The address of the server that pages speak of."""

TRIALS = "9"
"""Fewer than the pages ask for, as measuring takes its time; enough to be measured."""

AUTHOR = ("-c", "user.name=Jane Doe", "-c", "user.email=jane@example.org")

FAILING = {"pytest --fairness #2 of audit-a-model.md": "! 4 stale"}
"""What a page says will fail, and how; every other command succeeds."""


class Walk:
    """Follows a page from top to bottom: writes its files, sets its settings, runs its commands."""

    def __init__(self, page: Path, pytester: pytest.Pytester, base_url: str) -> None:
        self.page = page
        self.pytester = pytester
        self.base_url = base_url
        self.settings: dict[str, object] = {}
        self.commands: Counter[str] = Counter()
        self.configure({"fairness_target": "openai:my-model"})

    def configure(self, settings: dict[str, object]) -> None:
        self.settings |= {**settings, "fairness_base_url": self.base_url}
        lines = [f"{name} = {json.dumps(value)}" for name, value in self.settings.items()]
        (self.pytester.path / "pyproject.toml").write_text("\n".join(["[tool.pytest.ini_options]", *lines]))

    def take(self, block: Block) -> None:
        match block.language:
            case "toml" if "[tool.pytest.ini_options]" in block.text:
                self.configure(tomllib.loads(block.text)["tool"]["pytest"]["ini_options"])
            case "bash":
                for command in block.text.splitlines():
                    if not command.startswith(HARMLESS):
                        self.run(command)
            case "python" if block.title is None:
                script = processes.start(processes.run_script, block.text.replace(SERVER, self.base_url))
                script.join(100)
                assert script.exitcode == 0
            case "csv":
                # The page shows the first rows of a file that has more of them; here their last columns are random.
                header, *rows = csv.reader(block.text.splitlines())
                more = [[*row[:-1], noise(str(i))] for i, row in enumerate(rows * 12)]
                write(replace(block, text="\n".join(map(",".join, [header, *more]))), self.pytester.path)
            case "python" if (block.title or "").startswith(("tests/", "checks/")):
                write(block, self.pytester.path)
            case "yaml" | "jsonl":
                write(block, self.pytester.path)

    def run(self, command: str) -> None:
        self.commands[command] += 1
        program, *arguments = shlex.split(command.replace(SERVER, self.base_url))
        if arguments[:3] == ["-m", "pytest_fairness", "diff"] or "--fairness-against" in arguments:
            commit = [*AUTHOR, "commit", "-qm", "Baselines"]
            for words in (["init", "-q"], ["add", "-A"], commit, ["update-ref", "refs/remotes/origin/main", "HEAD"]):
                self.pytester.run("git", *words)
        if program == "pytest":
            few = ("--fairness-trials", TRIALS) if any(word.startswith("--fairness") for word in arguments) else ()
            with processes.forked_workers():
                result = self.pytester.runpytest_inprocess("-p", "no:randomly", *few, *arguments)
        else:
            if program == "git":
                result = self.pytester.run(program, *arguments)
                assert result.ret == 0
                assert result.stdout.str(), command
                return
            assert program == "python", command
            # `--help` ends the process.
            if arguments[:2] == ["-m", "pytest_fairness"] and "--help" not in arguments:
                assert main(arguments[2:]) == 0, command
                return
            result = self.pytester.run(sys.executable, *arguments)
        verdict = FAILING.get(f"{command} #{self.commands[command]} of {self.page.name}")
        assert result.ret == (0 if verdict is None else 1), f"{command}\n{result.stdout}\n{result.stderr}"
        if verdict is not None:
            result.stdout.fnmatch_lines([f"*{verdict}*"])


WORDS = ("lamp", "chair", "soap", "tea", "coat", "pen", "book", "bag", "rug", "mug", "kite", "jar")


class Noise:
    """Answers with words that have nothing to do with the question, other ones each time it is asked."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def __call__(self, messages: Messages, body: Body) -> str:
        question = json.dumps(messages)
        self.asked[question] += 1
        return noise(f"{question} {self.asked[question]}")


def noise(seed: str) -> str:
    digest = hashlib.sha256(seed.encode()).digest()
    return " ".join(WORDS[byte % len(WORDS)] for byte in digest)


WALKED = [
    page
    for page in PAGES
    # The tutorial is walked to the letter, by a test of its own.
    if page != TUTORIAL and any(block.page == page and block.language == "bash" for block in BLOCKS)
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", WALKED, ids=page_id)
def test_commands(page: Path, pytester: pytest.Pytester) -> None:
    own = [block for block in BLOCKS if block.page == page]
    with ChatServer(Noise(), echo=echo_by_words) as server:
        walk = Walk(page, pytester, server.url)
        write(Block(page, 0, "python", "shop/assistant.py", APPLICATION), pytester.path)
        if "probes/products.yaml" in page.read_text("utf-8") or not any(is_probe(block.text) for block in own):
            write(Block(page, 0, "yaml", "probes/products.yaml", PRODUCTS), pytester.path)
            walk.run("pytest --fairness-rebaseline probes/products.yaml")
        for block in own:
            walk.take(block)
    recorded = [re.search(r"^responses:", block.text, re.MULTILINE) for block in own if is_probe(block.text)]
    asks = any(command.startswith("pytest") for command in walk.commands) and not (recorded and all(recorded))
    assert (server.count > 0) is asks


def test_generated_parts_of_the_documentation_are_up_to_date() -> None:
    generated: dict[Path, str] = runpy.run_path(str(DOCS / "generate.py"))["generated"]()
    stale = [page_id(path) for path, text in generated.items() if path.read_text("utf-8") != text]
    assert stale == [], "run `python docs/generate.py`"


def test_the_help_names_every_report_format() -> None:
    options = (DOCS / "reference" / "options.md").read_text("utf-8")
    (report,) = re.findall(r"^\| `--fairness-report .*$", options, re.MULTILINE)
    assert [suffix for suffix in (*SUFFIXES, CODE_QUALITY) if suffix not in report] == []


FIXTURES = {"fairness_check"}


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_options_and_settings_exist(page: Path, pytestconfig: pytest.Config) -> None:
    text = page.read_text("utf-8")
    # The changelog names options of earlier versions, too.
    gone = {*REPLACED} if page.name == "CHANGELOG.md" else set()
    options = {option.strip("-").replace("-", "_") for option in re.findall(r"--fairness[a-z-]*", text)}
    for option in options - gone:
        pytestconfig.getoption(option)
    for setting in set(re.findall(r"`(fairness_[a-z_]+)[ `=]", text)) - FIXTURES - gone:
        pytestconfig.getini(setting)


def pages_of(nav: Sequence[object]) -> Iterator[str]:
    for entry in nav:
        if isinstance(entry, str):
            yield entry
        elif isinstance(entry, dict):
            for part in entry.values():
                yield from pages_of([part] if isinstance(part, str) else part)


def reached_from(page: Path, reached: set[Path]) -> set[Path]:
    """Add the pages that links lead to from a page, directly or through other pages."""
    reached.add(page)
    for target in re.findall(r"\]\(([^)#]+\.md)", page.read_text("utf-8")):
        linked = (page.parent / target).resolve()
        if not target.startswith("http") and linked not in reached:
            reached_from(linked, reached)
    return reached


def test_every_page_is_in_the_navigation_and_reached_from_the_readme() -> None:
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    site = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]
    named = list(pages_of(site["nav"]))
    assert sorted(named) == sorted(pages)
    # On the site, the first page has the content of the readme.
    assert {*DOCS.rglob("*.md")} - reached_from(README, set()) == {DOCS / "index.md"}


def test_the_workflow_that_a_page_shows_is_the_one_that_init_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "requirements-test.txt").write_text("pytest-xdist\n")
    assert main(["init", "--ci", "github", "--install", "pytest-fairness[local,report]"]) == 0
    [shown] = [block for block in BLOCKS if block.page == CI and block.title == ".github/workflows/fairness.yml"]
    assert (tmp_path / str(shown.title)).read_text("utf-8") == shown.text
