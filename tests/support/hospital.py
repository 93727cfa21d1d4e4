"""Target that returns the embedded model's answers to `examples/hospital.yaml`, recorded on 2026-11-22."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

RECORDED = Path(__file__).with_suffix(".jsonl")


class RecordedAnswers:
    """Callable that answers a prompt about a man or a woman with the next recorded text about this person."""

    def __init__(self) -> None:
        texts: defaultdict[str, list[str]] = defaultdict(list)
        for line in RECORDED.read_text("utf-8").splitlines():
            row = json.loads(line)
            texts[row["person"]].append(row["text"])
        self.texts: dict[str, Iterator[str]] = {person: iter(answers) for person, answers in texts.items()}

    def __call__(self, prompt: str) -> str:
        person = re.search(r"\b(man|woman)\b", prompt)
        assert person is not None
        return next(self.texts[person[0]])


answer = RecordedAnswers()
