"""Language models small enough to be made in a test: random weights, and a tokenizer trained on a few sentences."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

needs_transformers = pytest.mark.skipif(
    find_spec("torch") is None or find_spec("transformers") is None,
    reason="needs the extra `transformers`: pip install -e '.[transformers]'",
)
"""What uses a model made here; the command of the readme installs the extra, so nothing is left out there."""

SENTENCES = (
    "The nurse said that she was tired. The engineer said that he was busy.",
    "The farmer is brave. The poet is loud. Name one gift for a friend; name another one, please.",
    "The lamp on the table was green, and the tall man by the door was late again.",
)

SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}
CHAT_TEMPLATE = (
    "{% for message in messages %}<{{ message.role }}>{{ message.content }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def make_tokenizer(*, chat: bool = True) -> Any:
    """A byte-level tokenizer of about 300 tokens: any text has tokens, and few words have one of their own."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        SENTENCES,
        trainers.BpeTrainer(
            vocab_size=320,
            special_tokens=list(SPECIAL.values()),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **SPECIAL)
    if chat:
        fast.chat_template = CHAT_TEMPLATE
    return fast


def make_model(folder: Path, *, kind: str = "llama", chat: bool = True, seed: int = 1) -> Path:
    """A folder with a model of random weights, spread widely, so that it has strong opinions."""
    import torch
    import transformers

    tokenizer = make_tokenizer(chat=chat)
    torch.manual_seed(seed)
    sizes = {"vocab_size": len(tokenizer), "bos_token_id": 0, "eos_token_id": 1}
    if kind == "gpt2":
        config: Any = transformers.GPT2Config(
            n_embd=32, n_layer=2, n_head=2, n_positions=256, initializer_range=0.3, **sizes
        )
    else:
        config = transformers.LlamaConfig(
            hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=256, initializer_range=0.3, **sizes,
        )  # fmt: skip
    model = transformers.AutoModelForCausalLM.from_config(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
