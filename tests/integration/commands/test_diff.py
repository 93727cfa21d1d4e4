"""`python -m pytest_fairness diff`: what changed in the baselines, in real git repositories."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pytest_fairness.__main__ import main
from pytest_fairness.baselines.entries import Entry, Row
from pytest_fairness.baselines.files import update_baseline
from pytest_fairness.records import Measurement
from tests.support.projects import Project

TEST = """
import pytest

@pytest.mark.fairness
def test_letters(corpus_generator, fairness_check):
    corpus = corpus_generator("Hello {name}", axes={"name": {"unmarked": "Alex", "marked": ["Kim"]}}, trials=10)
    fairness_check("letters", corpus.refusals("name", "Kim"), gate="point")
"""
PROBE = """
kind: generation
prompt: What would you recommend to {name}?
axes:
  name: {unmarked: Alex, marked: [Kim]}
trials: 10
audits:
  refusals: {gate: point}
"""
JSD = "jsd[race=Black]"


def entry(value: float = 0.018, error: float = 0.005, **changes: Any) -> Entry:
    made = Entry.measured(
        Measurement(value, (value - 0.01, value + 0.01), error, 0.001, {"White": 15, "Black": 15}, {}),
        target="openai:model",
        sampling={},
        fingerprint={"prompt": "45c48cce2e2d"},
        date="2026-01-02T03:04:05Z",
        file="probes/products.yaml",
        labels={"race": "Black"},
        tolerance=0.02,
        contributions={"hair": 0.01},
    )
    return replace(made, **changes)


def rows(what: str) -> list[Row]:
    return [Row({"race": race}, trial, f"{what} for {race}") for race in ("Black", "White") for trial in range(3)]


@pytest.fixture
def diff(project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return a function that runs the command in the project and returns its output, or the error."""
    monkeypatch.chdir(project.path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: str) -> str:
        code = main(["diff", *arguments])
        out, err = capsys.readouterr()
        assert (code == 0, err == "") == (bool(out), bool(out))
        assert (err.count("\n"), "Traceback" in err) in ((0, False), (1, False))
        return out or err

    return run


def write(
    project: Project, entries: dict[str, Entry], answers: list[Row] | None = None, name: str = "products"
) -> None:
    update_baseline(project.path / "baselines", name, entries, rows("A shirt") if answers is None else answers)


def test_a_worse_value_is_shown_in_words_with_a_table_and_answers(project: Project, diff: Callable[..., str]) -> None:
    write(project, {JSD: entry()})
    commit = project.commit()
    assert diff() == f"No baseline changed between HEAD ({commit[:7]}) and working tree (1 item compared).\n"
    worse = entry(0.061, contributions={"hair": 0.02, "oil": -0.008})
    write(project, {JSD: replace(worse, target="openai:other", tolerance=0.03)}, rows("Hair oil"))
    text = diff()
    assert text.splitlines() == [
        f"1 item changed from HEAD ({commit[:7]}) to working tree: 1 worse. 0 unchanged.",
        "",
        "change    old    new        worse by  allowed  item",
        "worse   0.018  0.061  +0.043 ± 0.014     0.03  products jsd[race=Black]",
        "",
        "products jsd[race=Black]: worse",
        "  Black vs White: worse by 0.043 bits (allowed 0.03)",
        "  contributions: more for Black: hair 0.01 → 0.02; more for White: oil 0.008",
        "    (new)",
        "  in probes/products.yaml",
        "  tolerance 0.02 → 0.03",
        "  target openai:model → openai:other",
        "  answers for race Black, trial 0",
        "    before: “A shirt for Black”",
        "    now: “Hair oil for Black”",
        "  answers for race Black, trial 1",
        "    before: “A shirt for Black”",
        "    now: “Hair oil for Black”",
    ]
    shown = diff("--format", "markdown")
    assert "| worse | 0.018 | 0.061 | +0.043 ± 0.014 | 0.03 | products jsd\\[race=Black\\] |" in shown
    assert "<summary>products jsd[race=Black]: worse</summary>" in shown
    assert "  - now: “Hair oil for Black”" in shown
    diff_file = project.path / "changes.md"
    assert main(["diff", "-o", str(diff_file)]) == 0
    assert diff_file.read_text("utf-8") == shown


def test_a_wide_name_has_a_line_of_its_own(project: Project, diff: Callable[..., str]) -> None:
    name = "jsd[occupation_of_the_candidate=a very experienced senior nurse]"
    write(project, {JSD: entry(), name: entry()})
    project.commit()
    write(project, {JSD: entry(0.061), name: entry(0.064)})
    lines = diff().splitlines()
    assert lines[2:7] == [
        "  change    old    new        worse by  allowed",
        f"products {name}",
        "  worse   0.018  0.064  +0.046 ± 0.014     0.02",
        f"products {JSD}",
        "  worse   0.018  0.061  +0.043 ± 0.014     0.02",
    ]


def test_the_same_value_needs_no_examples(project: Project, diff: Callable[..., str]) -> None:
    write(project, {JSD: entry()})
    project.commit()
    write(project, {JSD: entry(target="openai:other")}, rows("Hair oil"))
    text = diff()
    assert "1 no worse" in text
    assert "Black vs White: 0.018 bits" in text
    assert "Hair oil" not in text


def test_a_page_is_refused_because_diff_writes_text_and_markdown(project: Project, diff: Callable[..., str]) -> None:
    write(project, {JSD: entry()})
    project.commit()
    assert diff("-o", "diff.html") == (
        "error: --output diff.html: diff writes text and Markdown. Name a file that ends in .md.\n"
    )
    assert not (project.path / "diff.html").exists()


def test_chance_has_no_cause(project: Project, diff: Callable[..., str]) -> None:
    write(project, {JSD: entry(error=0.05)})
    project.commit()
    write(project, {JSD: entry(0.061, error=0.05, contributions={"oil": 0.3})})
    text = diff()
    assert "the change may be due to chance: its 95 % confidence interval includes 0" in text
    assert "oil" not in text


def test_added_removed_renamed_and_other_rules(project: Project, diff: Callable[..., str]) -> None:
    old = {"jsd[race=Asian]": entry(0.1), "svm[race=Black]": entry(0.6), JSD: entry(), "mmd[race=Black]": entry(0.5)}
    write(project, old)
    write(project, {"snsr[age]": entry(0.3, file="probes/songs.yaml")}, name="songs")
    project.commit()
    new = {"jsd[race=Latino]": entry(0.1), "svm[race=Asian]": entry(0.5), JSD: entry(limit=0.5, tolerance=0.1)}
    gone = ["jsd[race=Asian]", "svm[race=Black]"]
    update_baseline(project.path / "baselines", "products", new, rows("A shirt"), remove=gone)
    update_baseline(project.path / "baselines", "songs", {}, [], remove=["snsr[age]"])
    write(project, {"snsr[age]": entry(0.4, file="probes/songs.yaml")}, name="music")
    text = diff()
    headline = " ".join(text.partition("\n\n")[0].split())
    assert headline.endswith(": 1 worse, 1 new, 1 removed, 1 renamed, 1 other limits. 1 unchanged.")
    assert "  renamed from products jsd[race=Asian]\n" in text
    assert "  renamed from songs snsr[age]\n" in text
    assert "  tolerance 0.02 → 0.1\n  limit not set → 0.5\n" in text
    assert "products svm[race=Asian]: new\n" in text
    assert "products svm[race=Black]: removed\n" in text


def test_two_revisions_and_their_common_ancestor(project: Project, diff: Callable[..., str]) -> None:
    write(project, {JSD: entry(0.01)})
    first = project.commit()
    project.git("checkout", "-q", "-b", "branch")
    write(project, {JSD: entry(0.02)})
    second = project.commit()
    project.git("checkout", "-q", "main")
    write(project, {JSD: entry(0.05)})
    third = project.commit()
    assert f"from branch ({second[:7]}) to main ({third[:7]}): 1 worse" in diff("branch..main")
    headline = " ".join(diff("main...branch").partition("\n\n")[0].split())
    assert f"from common ancestor of main and branch ({first[:7]}) to branch ({second[:7]}): 1 worse" in headline
    assert f"from {first[:12]} ({first[:7]}) to HEAD ({third[:7]})" in diff(f"{first[:12]}..")
    assert f"from branch ({second[:7]}) to working tree" in diff("branch")


def test_it_works_in_a_subfolder_and_for_a_folder_that_is_gone(
    project: Project, diff: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    update_baseline(project.path / "shop/kept here", "products", {JSD: entry()}, rows("A shirt"))
    project.commit()
    for file in (project.path / "shop/kept here").iterdir():
        file.unlink()
    (project.path / "shop/kept here").rmdir()
    monkeypatch.chdir(project.path / "shop")
    assert ": 1 removed. 0 unchanged." in diff("--baselines", "kept here")


def test_probes_and_python_tests_are_in_one_review(project: Project, diff: Callable[..., str]) -> None:
    project.probe(text=PROBE)
    project.write("test_letters.py", TEST)
    project.run("--fairness-rebaseline").assert_outcomes(passed=2)
    project.commit()
    project.run("--fairness-rebaseline", target="python:app:biased")
    text = diff()
    for name, file in (("gifts", "probes/gifts.yaml"), ("letters", "test_letters.py")):
        assert f"{name} refusals[name=Kim]: worse\n  Kim vs Alex: worse by 1 (allowed 0.1)\n" in text
        assert f"\n  in {file}\n" in text
    assert "now: “I'm sorry, but I can't help with that.”" in text


def test_text_of_a_repository_cannot_control_the_terminal_or_the_comment(
    project: Project, diff: Callable[..., str]
) -> None:
    hostile = "\x1b[2J\u202e::error::<script>@octocat"
    write(project, {"jsd[race=" + hostile + "]": entry()})
    project.commit()
    new = entry(0.9, contributions={hostile: 0.5}, labels={"race": hostile})
    write(project, {"jsd[race=" + hostile + "]": new}, rows(hostile))
    for text in (diff(), diff("--format", "markdown")):
        assert not {"\x1b", "\u202e"} & set(text)
        assert not any(line.lstrip().startswith("::") for line in text.splitlines())
    assert "<script>" not in text
    assert "@octocat" not in text


def test_damaged_and_oversized_files_are_named_and_the_others_shown(project: Project, diff: Callable[..., str]) -> None:
    write(project, {JSD: entry()})
    write(project, {JSD: entry()}, name="damaged")
    (project.path / "baselines/linked.json").symlink_to("/dev/zero")
    project.commit()
    (project.path / "baselines/linked.json").unlink()
    write(project, {JSD: entry(0.2)}, rows("Hair"))
    (project.path / "baselines/damaged.json").write_text("[" * 100_000, "utf-8")
    path = project.path / "baselines/products.responses.jsonl.gz"
    path.write_bytes(gzip.compress((json.dumps({"generation": "x" * 1000}) + "\n").encode() * 1_000) * 300)
    text = " ".join(diff().split())
    assert "working tree, damaged.json: is not a baseline" in text
    assert "working tree, products.responses.jsonl.gz: is larger than the maximum of 268,435,456 bytes" in text
    assert "products jsd[race=Black]: worse" in text
    assert "linked" not in text


@pytest.mark.parametrize("revision", ["nowhere", "--output=stolen", "-h", "HEAD~9", "a..b", "main\x1b[2J"])
def test_an_unknown_revision_is_one_sentence(project: Project, diff: Callable[..., str], revision: str) -> None:
    write(project, {JSD: entry()})
    project.commit()
    text = diff("--", revision)
    assert text.startswith("error: The git repository has no revision '")
    assert "\x1b" not in text
    assert not (project.path / "stolen").exists()


def test_without_baselines_repository_or_git_it_is_one_sentence(
    project: Project, diff: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = diff()
    assert text.startswith(f"error: {project.path}/baselines: baselines cannot be compared with a git revision: not")
    project.git("init", "-q")
    assert diff().startswith("error: The git repository has no revision 'HEAD'.")
    commit = project.commit()
    assert f"the folder has no baselines, neither in HEAD ({commit[:7]}) nor in working tree. Make baselines" in diff()
    monkeypatch.setenv("PATH", str(project.path / "empty"))
    assert ": git is not installed, or is not on the PATH." in diff()


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pytest.ini", "[pytest]\nfairness_baselines = ci/kept\n"),
        ("pyproject.toml", '[tool.pytest.ini_options]\nfairness_baselines = "ci/kept"\n'),
        ("pyproject.toml", '[tool.pytest]\nfairness_baselines = "ci/kept"\n'),
        ("pytest.toml", '[pytest]\nfairness_baselines = "ci/kept"\n'),
        ("setup.cfg", "[tool:pytest]\nfairness_baselines = ci/kept\n"),
    ],
)
def test_the_folder_is_that_of_the_ini_file(
    project: Project, diff: Callable[..., str], monkeypatch: pytest.MonkeyPatch, file: str, text: str
) -> None:
    (project.path / "pytest.ini").unlink()
    project.write(file, text)
    project.commit()
    update_baseline(project.path / "ci" / "kept", "products", {JSD: entry()}, rows("A lotion"))
    assert diff().startswith("1 item changed from HEAD")
    (project.path / "deep").mkdir()
    monkeypatch.chdir(project.path / "deep")
    assert diff().startswith("1 item changed from HEAD")
    assert "no baselines" in diff("--baselines", "ci/kept"), "relative to the working directory"


WORDED_APP = """
asked = 0

def plain(prompt):
    global asked
    asked += 1
    return f"A {('lamp', 'mirror', 'rug')[asked % 3]}, a {('chair', 'sofa')[asked % 2]} and a sturdy table."

def worded(prompt):
    return "A lipstick and an apron." if "Kim" in prompt else plain(prompt)

kim_asked = 0

def at_last(prompt):
    global kim_asked
    kim_asked += "Kim" in prompt
    return (worded(prompt) if kim_asked > 20 else plain(prompt)) + " Enjoy."
"""


def test_a_change_has_the_numbers_of_the_run(project: Project, diff: Callable[..., str]) -> None:
    varied = """
from random import Random

WORDS = "lamp mirror rug chair sofa table clock vase shelf stool desk bench".split()
draw = Random(3)

def varied(prompt):
    return " ".join(draw.choices(WORDS, k=6))

def half(prompt):
    return varied(prompt) + (" apron" if "Kim" in prompt and draw.random() < 0.6 else "")
"""
    project.write("shop.py", varied)
    project.probe(text=PROBE.replace("refusals: {gate: point}", "svm: {}").replace("10", "20"))
    project.run("--fairness-rebaseline", target="python:shop:varied")
    project.commit()
    (item,) = project.report(target="python:shop:half")["items"]
    low, high = item["change"]["interval"]
    said = f"{item['change']['value']:+.3g} ± {(high - low) / 2:.2g}"
    project.run("--fairness-rebaseline", "--fairness-replay", target="python:shop:half")
    assert f" {said} " in diff()


def test_a_change_of_marked_words_is_that_of_the_run_and_names_the_words(
    project: Project, diff: Callable[..., str]
) -> None:
    probe = PROBE.replace("refusals: {gate: point}", "marked_words: {tolerance: 1}").replace("10", "20")
    project.write("shop.py", WORDED_APP)
    project.probe(text=probe)
    project.run("--fairness-rebaseline", target="python:shop:plain")
    project.commit()
    (item,) = project.report(target="python:shop:worded")["items"]
    assert item["verdict"] == "regression"
    grew = item["change"]["value"]
    assert grew < item["value"], "the difference of the values is another number"
    project.run("--fairness-rebaseline", "--fairness-replay", target="python:shop:worded")
    text = " ".join(diff().split())
    assert f"worse {grew:.0f} words grew 1 gifts marked_words[name=Kim]" in text
    assert f"Kim vs Alex: {grew:.0f} words grew (allowed 1)" in text
    assert "an (0% → 100% of this group's texts" in text
    assert "now significant: " in text
    assert "lipstick" in text.partition("now significant: ")[2].partition(" accepted")[0]
    project.commit()
    project.run("--fairness-rebaseline", target="python:shop:plain")
    text = " ".join(diff().split())
    assert "no longer significant: " in text
    project.probe(text=probe.replace("What would", "Which present would"))
    assert "`diff` needs the answers of both baselines and an unchanged probe" in " ".join(diff().split())


def test_the_answers_shown_for_marked_words_contain_the_words(project: Project, diff: Callable[..., str]) -> None:
    project.write("shop.py", WORDED_APP)
    project.probe(text=PROBE.replace("refusals: {gate: point}", "marked_words: {}").replace("10", "40"))
    project.run("--fairness-rebaseline", target="python:shop:plain")
    project.commit()
    project.run("--fairness-rebaseline", target="python:shop:at_last")
    shown = [line for line in diff().splitlines() if line.strip().startswith("now: ")]
    assert len(shown) == 2
    assert all("lipstick" in line for line in shown)
