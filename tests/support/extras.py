"""Package with one extension of each kind; the module writes it as a wheel and installs the wheel with pip."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

MODULE = '''
"""Extensions of pytest-fairness: an audit, a target, a scorer and a report format."""

import statistics

from pytest_fairness.audits.base import Audit, AuditItem
from pytest_fairness.audits.rules import SignificantChange
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.probes.field_types import AuditSettings
from pytest_fairness.probes.generation import GenerationProbe
from pytest_fairness.records import Comparison, Measurement, Response


class LongerAnswers(Audit[GenerationProbe, AuditSettings]):
    """Difference between two groups' mean numbers of words."""

    info = AuditInfo(
        name="longer_answers",
        title="Longer answers",
        better=Direction.ZERO,
        unit="words",
        tolerance=5.0,
        value_range=(-1000.0, 1000.0),
    )
    rule = SignificantChange()
    kind = "generation"
    version = 1
    settings_model = AuditSettings

    def items(self, probe, settings):
        return [
            AuditItem(probe, self.info.name, f"{axis}={value}", {axis: value}, settings)
            for axis in probe.axes
            for value in probe.axes[axis].marked
        ]

    def uses(self, item, labels):
        ((axis, value),) = item.labels.items()
        return labels[axis] in (value, item.probe.axes[axis].unmarked)

    def measure(self, item, answers):
        ((axis, value),) = item.labels.items()
        words = {True: [], False: []}
        for answer in answers:
            if answer.usable:
                words[answer.labels[axis] == value].append(len(answer.content.split()))
        error = sum(statistics.variance(side) / len(side) for side in words.values()) ** 0.5
        difference = statistics.fmean(words[True]) - statistics.fmean(words[False])
        interval = (difference - 1.96 * error, difference + 1.96 * error)
        n = {name: len(words[side]) for name, side in ((value, True), (item.probe.axes[axis].unmarked, False))}
        return Measurement(difference, interval, error, None, n, dict.fromkeys(n, 0))

    def compare(self, item, current, baseline):
        runs = [self.measure(item, run) for run in (current, baseline)]
        return self.compare_values(runs[0], runs[1].value, runs[1].standard_error, from_answers=True)


class Parrot:
    """Target that repeats the end of the prompt."""

    name = identity = "parrot:"
    reusable = True
    concurrency = 4

    def check(self):
        pass

    async def open(self):
        pass

    async def close(self):
        pass

    async def ask(self, request):
        end = request.prompt[len(request.prompt) // 2 :]
        return Response(f"{end} {'Really. ' * (1 + request.trial % 3)}{request.trial}")


def parrot(rest, settings):
    return Parrot()


class Shouting:
    """Scorer: share of capital letters."""

    identity = "shouting 1.0"
    labels = ("loud",)

    def scores(self, texts):
        return [{"loud": sum(map(str.isupper, text)) / max(1, len(text))} for text in texts]


def length_in_letters(text):
    """Scorer: number of letters."""
    return sum(map(str.isalpha, text))


def csv(report):
    return "".join(f"{item['id']},{item['verdict']}\\n" for item in report["items"])
'''
ENTRY_POINTS = """[pytest_fairness.audits]
longer_answers = fairness_extras:LongerAnswers
[pytest_fairness.targets]
parrot = fairness_extras:parrot
[pytest_fairness.scorers]
shouting = fairness_extras:Shouting
length_in_letters = fairness_extras:length_in_letters
[pytest_fairness.reports]
csv = fairness_extras:csv
"""


def make_wheel(folder: Path, module: str = MODULE, entry_points: str = ENTRY_POINTS) -> Path:
    """Write the package as a wheel into a folder."""
    wheel, about = folder / "fairness_extras-1.0-py3-none-any.whl", "fairness_extras-1.0.dist-info"
    files = {
        "fairness_extras.py": module,
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: fairness-extras\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": entry_points,
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{about}/RECORD"])
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in (*files.items(), (f"{about}/RECORD", record)):
            archive.writestr(name, text)
    return wheel


def install(wheel: Path, site: Path) -> None:
    """Install a wheel with pip into a folder; the caller adds the folder to PYTHONPATH."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(site)]
    subprocess.run([*command, str(wheel)], check=True, capture_output=True)
