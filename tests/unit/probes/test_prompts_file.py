"""Prompts of a generation probe in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_fairness import kinds, probes
from pytest_fairness.errors import ProbeError
from pytest_fairness.probes import GenerationProbe
from pytest_fairness.records import Answer, Status

PROBE = """\
kind: generation
prompts: {PROMPTS}
axes:
  name: {unmarked: Anna, marked: [Aisha, Ayse]}
audits: {jsd: }
"""
LOG = "text,source\n" + "".join(f'"{{name}} asks question {number}, please answer.",chat\n' for number in range(30))


def load(folder: Path, prompts: str = "file: log.csv", log: str = LOG, more: str = "") -> GenerationProbe:
    (folder / "log.csv").write_text(log, encoding="utf-8")
    path = folder / "probe.yaml"
    path.write_text(PROBE.replace("PROMPTS", prompts) + more, encoding="utf-8")
    probe = probes.load(path, kinds.schemas())
    assert isinstance(probe, GenerationProbe)
    return probe


def test_each_prompt_is_asked_once_for_each_value_and_is_a_stratum(tmp_path: Path) -> None:
    asked = list(load(tmp_path).prompts())
    assert len(asked) == 30 * 3
    assert len({prompt.labels["prompt"] for prompt in asked}) == 30
    assert [prompt.request.prompt for prompt in asked[:2]] == [
        "Anna asks question 0, please answer.",
        "Aisha asks question 0, please answer.",
    ]
    assert len(list(load(tmp_path, more="trials: 2\n").prompts())) == 2 * 90


def test_a_sample_depends_on_the_seed_and_not_on_the_order_and_lasts_when_prompts_are_added(tmp_path: Path) -> None:
    def ids(prompts: str, log: str = LOG) -> set[str]:
        return {*load(tmp_path, prompts, log).templates}

    ten = ids("file: log.csv, sample: 10, seed: 1")
    head, *rows = LOG.splitlines(keepends=True)
    assert len(ten) == 10
    assert ids("file: log.csv, sample: 10, seed: 1", head + "".join(reversed(rows))) == ten
    assert ids("file: log.csv, sample: 10, seed: 2") != ten
    more = LOG + "".join(f"{{name}} wants {number},chat\n" for number in range(3))
    assert len(ids("file: log.csv, sample: 10, seed: 1", more) & ten) >= 7


def test_equal_prompts_are_one_and_empty_rows_are_left_out(tmp_path: Path) -> None:
    log = "text\nHello {name}\n\nHello {name}\n   \nBye {name}\n"
    assert [*load(tmp_path, log=log).templates.values()] == ["Hello {name}", "Bye {name}"]


def test_prompts_of_other_runs_do_not_make_a_baseline_stale(tmp_path: Path) -> None:
    first = load(tmp_path, "file: log.csv, sample: 10")
    second = load(tmp_path, "file: log.csv, sample: 20")
    assert first.fingerprint({"name": "Aisha"}) == second.fingerprint({"name": "Aisha"})
    assert len({*first.templates} & {*second.templates}) == 10


@pytest.mark.parametrize(
    ("prompts", "log", "message"),
    [
        (
            "file: log.csv, column: texts",
            LOG,
            "1: no column 'texts'; set `prompts.column` to the column with the prompts: did you mean 'text'?",
        ),
        ("file: log.csv, sample: 31", LOG, "the file holds only 30 different prompts: set `sample` to at most 30"),
        ("file: log.csv", "text,kind\n,chat\n", "log.csv:1: the column 'text' holds no texts; set `prompts.column` to"),
        ("file: log.csv", "text\nHello {name}\nHello\n", "log.csv:3: the prompt does not use the axis 'name'"),
        ("file: log.csv", 'text\n"Say {""a"": 1} to {name}"\n', "log.csv:2:"),
        ("file: log.csv", "text\nHello {nmae}\n", "did you mean 'name'"),
        ("file: log.csv", "text\n", "log.csv:1: the file holds no prompts"),
        ("file: none.csv", LOG, "there is no file 'none.csv'"),
        ("file: ../log.csv", LOG, "lies outside the probe's folder"),
        ("file: log.csv, sample: 0", LOG, "prompts.sample"),
    ],
)
def test_mistakes_are_located(tmp_path: Path, prompts: str, log: str, message: str) -> None:
    with pytest.raises(ProbeError) as error:
        load(tmp_path, prompts, log)
    assert message in str(error.value)


def test_turns_need_no_placeholder(tmp_path: Path) -> None:
    probe = load(tmp_path, more="turns: [Why?, Anything else?]\n")
    assert len(list(probe.prompts())) == 30 * 3
    first = next(probe.prompts())
    answer = Answer(first.labels, 0, "An answer.", Status.OK, "An answer.")
    (turn,) = probe.follow_ups.next_prompts([answer])
    assert [message.content for message in turn.request.messages] == [
        "Anna asks question 0, please answer.",
        "An answer.",
        "Why?",
    ]


def test_prompts_need_no_axis_that_a_turn_uses(tmp_path: Path) -> None:
    log = "text\nWho is clever?\nWho is rich?\n"
    assert len(load(tmp_path, log=log, more="turns: ['And what of {name}?']\n").templates) == 2
    with pytest.raises(ProbeError, match=r"log.csv:2: the prompt does not use the axis 'name'"):
        load(tmp_path, log=log, more="turns: [Why?]\n")


def test_prompts_are_written_in_one_place(tmp_path: Path) -> None:
    with pytest.raises(ProbeError, match="either `prompt` or `prompts`"):
        load(tmp_path, more="prompt: Hello {name}\n")
    with pytest.raises(ProbeError, match="a variant of this probe can change only `system`"):
        load(tmp_path, more="variants: {short: {prompt: 'Hi {name}'}}\n")
