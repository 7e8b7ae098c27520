"""Convert all-MiniLM-L6-v2 (BERT with WordPiece) from safetensors to GGUF; same bytes each time."""

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFWriter, LlamaFileType, PoolingType, TokenType
from gguf.constants import GGML_QUANT_VERSION
from safetensors.numpy import load_file

SOURCE_FILES = ("config.json", "1_Pooling/config.json", "vocab.txt", "model.safetensors")
_SPECIAL = {"bos": "[CLS]", "eos": "[SEP]", "unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]"}
_CONTROL = frozenset({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})
_TABLES = {
    "embeddings.word_embeddings": "token_embd",
    "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types",
    "embeddings.LayerNorm": "token_embd_norm",
}
_LAYER = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
# llama.cpp adds these two to activations as they are, so they keep full precision.
_FULL_PRECISION = frozenset({"token_types.weight", "position_embd.weight"})


def convert_minilm(source: Path, target: Path) -> None:
    """Write ``target`` from the files of ``source`` (see SOURCE_FILES, flattened names)."""
    config = json.loads((source / "config.json").read_text())
    pooling = json.loads((source / "1_Pooling" / "config.json").read_text())
    # It reports every step as news.
    logging.getLogger("gguf").setLevel(logging.WARNING)
    writer = GGUFWriter(str(target), "bert")
    _write_shape(writer, config, pooling)
    _write_vocabulary(writer, (source / "vocab.txt").read_text(encoding="utf-8").splitlines())
    for name, values in sorted(load_file(str(source / "model.safetensors")).items()):
        if name == "embeddings.position_ids" or name.startswith("pooler."):
            continue
        tensor = _tensor_name(name)
        is_full = values.ndim == 1 or tensor in _FULL_PRECISION
        writer.add_tensor(tensor, values.astype(np.float32 if is_full else np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _write_shape(writer: GGUFWriter, config: dict[str, Any], pooling: dict[str, Any]) -> None:
    writer.add_type("model")
    writer.add_name("all-MiniLM-L6-v2")
    writer.add_size_label("23M")
    writer.add_license("apache-2.0")
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_layer_norm_eps(config["layer_norm_eps"])
    writer.add_file_type(LlamaFileType.MOSTLY_F16)
    writer.add_causal_attention(False)
    is_cls = pooling["pooling_mode_cls_token"]
    writer.add_pooling_type(PoolingType.CLS if is_cls else PoolingType.MEAN)
    writer.add_quantization_version(GGML_QUANT_VERSION)
    writer.add_token_type_count(config["type_vocab_size"])


def _write_vocabulary(writer: GGUFWriter, vocabulary: list[str]) -> None:
    """Write WordPiece as llama.cpp reads it: word starts are marked, continuations are bare."""
    tokens = []
    types = []
    for token in vocabulary:
        is_control = token in _CONTROL
        types.append(TokenType.CONTROL if is_control else TokenType.NORMAL)
        bare = token[2:] if token.startswith("##") else "\u2581" + token
        tokens.append(token if is_control else bare)
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("jina-v2-en")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    for name, token in _SPECIAL.items():
        getattr(writer, f"add_{name}_token_id")(vocabulary.index(token))
    writer.add_mask_token_id(vocabulary.index("[MASK]"))
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(True)
    writer.add_add_sep_token(False)
    writer.add_bool("tokenizer.ggml.normalizer.lowercase", True)


def _tensor_name(name: str) -> str:
    """Translate a BERT parameter's name into llama.cpp's."""
    stem, _, suffix = name.rpartition(".")
    if stem in _TABLES:
        return f"{_TABLES[stem]}.{suffix}"
    _, _, layer, part = stem.split(".", 3)
    return f"blk.{layer}.{_LAYER[part]}.{suffix}"
