"""Language models that are small enough for tests: random weights, and a tokenizer trained on a few sentences."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

needs_transformers = pytest.mark.skipif(
    find_spec("torch") is None or find_spec("transformers") is None,
    reason="needs the extra `transformers`: pip install -e '.[transformers]'",
)
"""Mark of tests that use these models."""

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
    """Return a byte-level tokenizer of about 300 tokens; it encodes any text, and most words take several tokens."""
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
    """Save a model with random weights, large enough for clearly different probabilities; return its folder."""
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


def make_gguf(folder: Path, file: Path) -> Path:
    """Save the Llama model in a folder as a GGUF file, without loss of precision; return the file."""
    import gguf
    import transformers

    model: Any = transformers.AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    config, weights = model.config, {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    merges = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]
    tokens = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types(
        [gguf.TokenType.CONTROL if token in SPECIAL.values() else gguf.TokenType.NORMAL for token in tokens]
    )
    writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_bos_token_id(tokenizer.bos_token_id)
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_chat_template(tokenizer.chat_template)
    names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    parts = {
        "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    }  # fmt: skip
    for layer in range(config.num_hidden_layers):
        names |= {f"model.layers.{layer}.{part}": f"blk.{layer}.{name}" for part, name in parts.items()}
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    for name, tensor in weights.items():
        written = names[name.removesuffix(".weight")]
        count = heads.get(written.rpartition(".")[2])
        if count is not None:  # GGUF interleaves the two halves of rotary embeddings
            halves = tensor.reshape(count, 2, tensor.shape[0] // count // 2, tensor.shape[1])
            tensor = halves.swapaxes(1, 2).reshape(tensor.shape).copy()
        writer.add_tensor(f"{written}.weight", tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file
