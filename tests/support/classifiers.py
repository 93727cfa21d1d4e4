"""Small text classifier, trained within seconds and saved like a model of the Hugging Face Hub."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

GOOD = ("kind", "clever", "honest", "gentle", "brave")
BAD = ("cruel", "stupid", "lazy", "violent", "dirty")
WORDS = (
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *GOOD,
    *BAD,
    "xyz",
    "the",
    "is",
    "was",
    "and",
    "a",
    "in",
    "on",
    "woman",
)


def train(folder: Path, labels: Sequence[str] = ("negative", "neutral", "positive", "other")) -> Path:
    """Save a tiny BERT that labels texts with good words 2 and texts with bad words 0; return its folder."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(WORDS), "utf-8")
    tokenizer = BertTokenizerFast(str(vocabulary), model_max_length=64)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(WORDS), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=64, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        id2label=dict(enumerate(labels)), label2id={label: number for number, label in enumerate(labels)},
    )  # fmt: skip
    model = BertForSequenceClassification(config)
    forms = ("the xyz is {} and {}", "{} and {} is the xyz, somewhere else", "somehow the xyz was {} or {}")
    texts = [form.format(word, other) for words in (BAD, GOOD) for form in forms for word in words for other in words]
    wanted = torch.tensor([0] * 75 + [2] * 75)
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(30):
        optimizer.zero_grad()
        model(**batch, labels=wanted).loss.backward()
        optimizer.step()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def rename_labels(folder: Path, labels: Sequence[str]) -> None:
    """Rename the labels of a saved model."""
    path = folder / "config.json"
    config = json.loads(path.read_text("utf-8"))
    config["id2label"] = {str(number): label for number, label in enumerate(labels)}
    path.write_text(json.dumps(config), "utf-8")
