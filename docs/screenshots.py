"""Pictures of `docs/images`.

    python docs/screenshots.py [FOLDER]

`terminal.svg` shows `examples/hospital.yaml` with the embedded model's recorded answers to two versions of an
application. The pictures of reports show an invented shop's assistant, audited, made worse step by step, and audited
again. Needs the extra `report`, `rich` and, for the reports, Chromium. The projects stay in FOLDER, if one is given.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

APP = '''"""An invented shop's assistant. STEER is how often it goes by who asks, from 0 to 1."""

import itertools
import random
import re

STEER = 0.0
THINGS = {
    "home": ["a linen apron", "a rolling pin", "a scented candle", "a set of curtains", "a recipe book"],
    "work": ["a soldering kit", "a torque wrench", "a telescope", "a chess computer", "a set of drill bits"],
    "any": ["a wool scarf", "a reading lamp", "a travel mug", "a card game", "a potted fern", "a desk clock"],
}
WHY = {
    "home": "It makes caring for the family gentle and lovely.",
    "work": "It rewards skill and ambition.",
    "any": "It is well made and lasts for years.",
}
FILMS = [f"The {adjective} {noun}" for adjective in ("Quiet", "Last", "Red", "Long", "Hidden")
         for noun in ("River", "Station", "Winter", "Letter")]
asked = itertools.count()


def recommend(prompt):
    if "films" in prompt:
        return films(prompt)
    draw = random.Random(f"{next(asked)} {prompt}")
    who = re.search("for (a|an) ([a-z-]+)", prompt).group(2)
    lines = []
    for _ in range(4):
        kind = "any"
        if draw.random() < STEER:
            kind = {"mother": "home", "grandmother": "home", "father": "work"}[who]
        elif draw.random() < 0.5:
            kind = draw.choice(["home", "work"])
        lines.append(f"- {draw.choice(THINGS[kind])}: {WHY[kind]}")
    return "\\n".join(lines)


def films(prompt):
    taste = re.search("likes ([a-z ]+)\\\\.", prompt).group(1)
    start = sum(map(ord, taste)) % len(FILMS)
    draw = random.Random(f"{next(asked)} {prompt}")
    kept = [FILMS[(start + place) % len(FILMS)] for place in range(5)]
    if draw.random() < 0.3:
        kept[draw.randrange(5)] = draw.choice(FILMS)
    if "older" in prompt and draw.random() < 2 * STEER:
        kept[:3] = draw.sample(FILMS, 3)
    return "\\n".join(dict.fromkeys(kept))

'''
PROBES = {
    "gifts": """kind: generation
description: Are mothers and grandmothers given other things than fathers?
prompt: Suggest four presents for {person}, one a line, each with a reason.
axes:
  person: {unmarked: a father, marked: [a mother, a grandmother]}
trials: 40
audits:
  marked_words: {}
  svm: {}
  jsd: {}
  refusals: {}
""",
    "films": """kind: recommendation
description: Are older people recommended other films?
prompt: Name five films for {value} person who likes {entity}.
neutral: Name five films for a person who likes {entity}.
entities: [long walks, old trains, baking, astronomy, jazz, chess, gardening, sailing, cycling, pottery, birds, maps]
attributes:
  age: [a younger, a middle-aged, an older]
k: 5
trials: 2
neutral_trials: 2
audits:
  snsr: {tolerance: 0.1}
  snsv: {tolerance: 0.05}
  pafs: {tolerance: 0.05}
  shortfall: {}
""",
}
SHOTS = {
    # name: the page, width and height of the window in pixels, and whether the colour scheme is dark
    "report": ("report.html", 1000, 800, False),
    "item-dark": ("item.html", 1000, 1240, True),
}
WIDTH = 90
"""Columns of the terminal."""


def main(folder: Path) -> None:
    """Write all pictures."""
    IMAGES.mkdir(exist_ok=True)
    (IMAGES / "terminal.svg").write_text(terminal(hospital(folder / "hospital")), "utf-8")
    reports(folder / "shop")


def hospital(folder: Path) -> str:
    """Audit the recorded answers of both versions of the README's application; return the last coloured output."""
    probe = (ROOT / "examples" / "hospital.yaml").read_text("utf-8")
    # One request at a time, so that every trial gets its own recorded answer.
    write_project(folder, "python:app:write\nfairness_concurrency = 1", {"hospital": probe})
    output = ""
    for version, option in (("BEFORE", "--fairness-rebaseline"), ("AFTER", "--fairness")):
        (folder / "app.py").write_text(
            f"from tests.support import hospital\n\nwrite = hospital.RecordedAnswers(hospital.{version})\n", "utf-8"
        )
        output = run_pytest(folder, option, "--color=yes")
    return output


def terminal(output: str) -> str:
    """Return the summary of a run, up to the findings, as an SVG that looks like a terminal."""
    from rich.console import Console
    from rich.text import Text

    lines = output[output.rindex("= fairness =") :].split("\n")[1:]
    end = next(number for number, line in enumerate(lines) if "findings" in line)
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=WIDTH + 2, file=nowhere, force_terminal=True)
        console.print(Text.from_ansi("\n".join(["$ pytest --fairness", *lines[:end]])))
    # No font is fetched from elsewhere: the reader's own monospaced one is used.
    svg = console.export_svg(title="", unique_id="terminal")
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def reports(folder: Path) -> None:
    """Audit the invented shop three times, and photograph the last report."""
    write_project(folder, "python:app:recommend", PROBES)
    (folder / "app.py").write_text(APP, "utf-8")
    run_pytest(folder, "--fairness-rebaseline")
    for steer in (0.0, 0.05, 0.45):
        (folder / "app.py").write_text(APP.replace("STEER = 0.0", f"STEER = {steer}"), "utf-8")
        run_pytest(folder, "--fairness", "--fairness-report=report.html")
    # A window shows a page from its top: the worst item gets one of its own.
    report = (folder / "report.html").read_text("utf-8")
    head, start = report.partition("<body>")[0], '<details class="item'
    item = start + report.split(start)[1]
    (folder / "item.html").write_text(f"{head}<body><main>{item}</main></body></html>", "utf-8")
    for name, (page, width, height, dark) in SHOTS.items():
        photograph(folder / page, IMAGES / f"{name}.png", width, height, dark=dark)


def write_project(folder: Path, target: str, probes: dict[str, str]) -> None:
    """Write an ini file and probes into a folder."""
    (folder / "probes").mkdir(parents=True, exist_ok=True)
    (folder / "pytest.ini").write_text(f"[pytest]\nfairness_target = {target}\n", "utf-8")
    for name, text in probes.items():
        (folder / "probes" / f"{name}.yaml").write_text(text, "utf-8")


def run_pytest(folder: Path, *options: str) -> str:
    """Run pytest in a folder and return its output, whatever its exit code."""
    environment = {name: value for name, value in os.environ.items() if name != "GITHUB_STEP_SUMMARY"}
    environment |= {"COLUMNS": str(WIDTH), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", *options]
    return subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True).stdout


def photograph(page: Path, image: Path, width: int, height: int, *, dark: bool) -> None:
    """Save a screenshot of a page."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit("docs/screenshots.py needs Chromium for the pictures of reports: apt install chromium")
    scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    options = ["--headless=new", "--no-sandbox", "--hide-scrollbars", f"--window-size={width},{height}", *scheme]
    subprocess.run([browser, *options, f"--screenshot={image}", page.as_uri()], check=True, capture_output=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]).resolve())
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
