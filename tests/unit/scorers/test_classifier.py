"""Text-classification models, with a small one that is made here."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from pytest_fairness.errors import ModelError
from pytest_fairness.scorers import require_scorer, text_classifier
from pytest_fairness.scorers.text_classifier import REGARD_LABELS, Classifier

needs_transformers = pytest.mark.skipif(
    find_spec("torch") is None or find_spec("transformers") is None, reason="needs the extra `transformers`"
)
pytestmark = pytest.mark.filterwarnings("default")  # what other packages deprecate is theirs


def of(folder: Path) -> Classifier:
    return Classifier(folder.name, folder.parent)


@needs_transformers
def test_probabilities_have_the_order_of_the_texts_and_sum_to_one(regard_model: Path) -> None:
    texts = [
        "The XYZ is cruel and violent",
        "kind",
        "The xyz is brave and honest, and kind and clever",
        "",
        "the " * 900,
    ]
    scores = of(regard_model).scores(texts)
    assert all(sum(each.values()) == pytest.approx(1, abs=1e-4) for each in scores)
    assert scores[0]["negative"] > 0.9
    assert scores[2]["positive"] > 0.9
    alone = [of(regard_model).scores([text])[0] for text in texts]
    for together, single in zip(scores, alone, strict=True):
        assert together == pytest.approx(single, abs=1e-4)


@needs_transformers
def test_many_texts_are_scored_in_batches(regard_model: Path) -> None:
    texts = [f"the xyz is {'cruel' if number % 2 else 'kind'}" for number in range(70)]
    negative = [each["negative"] > 0.5 for each in of(regard_model).scores(texts)]
    assert negative == [bool(number % 2) for number in range(70)]


@needs_transformers
def test_identity_depends_on_the_files_of_the_folder_not_its_path(regard_model: Path, tmp_path: Path) -> None:
    from shutil import copytree

    copy = copytree(regard_model, tmp_path / regard_model.name)
    assert of(copy).identity == of(regard_model).identity
    (copy / "vocab.txt").write_text("other", "utf-8")
    assert of(copy).identity != of(regard_model).identity


@needs_transformers
def test_labels_are_names_in_lower_case_or_those_of_regard(regard_model: Path, tmp_path: Path) -> None:
    from shutil import copytree

    from tests.support.classifiers import rename_labels

    copy = copytree(regard_model, tmp_path / "copy")
    rename_labels(copy, ["LABEL_0", "LABEL_1", "LABEL_2", "LABEL_3"])
    assert of(copy).labels == REGARD_LABELS
    rename_labels(copy, ["NEGATIVE", "POSITIVE"])
    assert of(copy).labels == ("negative", "positive")
    require_scorer(of(copy), "negative")
    with pytest.raises(ModelError, match=r"no label 'toxic'\. Name one of its labels: negative, positive"):
        require_scorer(of(copy), "toxic")
    rename_labels(copy, ["LABEL_0", "LABEL_1"])
    with pytest.raises(ModelError, match="the model's labels have no names"):
        require_scorer(of(copy), "negative")


@needs_transformers
def test_a_missing_model_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match="has no folder"):
        require_scorer(Classifier("./none", tmp_path), "negative")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match=r"empty: config\.json cannot be read"):
        require_scorer(of(tmp_path / "empty"), "negative")

    def offline(*arguments: object, **settings: object) -> None:
        from huggingface_hub.errors import LocalEntryNotFoundError

        raise LocalEntryNotFoundError("no network")

    monkeypatch.setattr("huggingface_hub.snapshot_download", offline)
    with pytest.raises(ModelError, match="Run `hf download somebody/model`"):
        require_scorer(Classifier("somebody/model", tmp_path), "negative")


@needs_transformers
def test_weights_that_do_not_fit_are_an_error_without_a_traceback(regard_model: Path, tmp_path: Path) -> None:
    from shutil import copytree

    copy = copytree(regard_model, tmp_path / "copy")
    (copy / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="has no weights in the format safetensors"):
        of(copy).scores(["the xyz is kind"])
    (copy / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(ModelError, match="cannot be loaded"):
        of(copy).scores(["the xyz is kind"])


@needs_transformers
def test_pickled_weights_are_not_loaded(regard_model: Path, tmp_path: Path) -> None:
    from shutil import copytree

    import torch

    copy = copytree(regard_model, tmp_path / "copy")
    (copy / "model.safetensors").unlink()
    torch.save({"a": torch.zeros(1)}, copy / "pytorch_model.bin")
    with pytest.raises(ModelError, match="has no weights in the format safetensors"):
        require_scorer(of(copy), "negative")


@needs_transformers
def test_a_model_outside_of_the_probes_folder_is_rejected(regard_model: Path, tmp_path: Path) -> None:
    from shutil import copytree

    probes = tmp_path / "probes"
    inside = copytree(regard_model, probes / "models" / "regard")
    copytree(regard_model, tmp_path / "outside")
    require_scorer(Classifier("models/regard", probes), "negative")
    for name in (str(tmp_path / "outside"), str(inside), "../outside", "models/../../outside"):
        with pytest.raises(ModelError, match="probe's folder; move it there, and set `model:` to its path"):
            require_scorer(Classifier(name, probes), "negative")
    (probes / "linked").symlink_to(tmp_path / "outside", target_is_directory=True)
    with pytest.raises(ModelError, match="linked is a link that leads out of the probe's folder"):
        require_scorer(Classifier("linked", probes), "negative")
    (inside / "model.safetensors").unlink()
    (inside / "model.safetensors").symlink_to(tmp_path / "outside" / "model.safetensors")
    with pytest.raises(ModelError, match=r"models/regard/model.safetensors is a link that leads out"):
        require_scorer(Classifier("models/regard", probes), "negative")
    for name in ("~/model", "a/b/c", "http://host/model", "owner/../x"):
        with pytest.raises(
            ModelError, match="to a folder inside of the probe's folder, or to an id of the Hugging Face Hub"
        ):
            require_scorer(Classifier(name, probes), "negative")


def test_a_missing_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_classifier, "find_spec", lambda _: None)
    with pytest.raises(ModelError, match=r"pip install \"pytest-fairness\[transformers\]\""):
        require_scorer(of(tmp_path), "negative")
