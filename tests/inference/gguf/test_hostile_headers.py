"""Every way to lie in a header that has hurt a server before is refused by its own code."""

import struct
from dataclasses import replace

import pytest

from inference.gguf.verdict import GgufRejected
from tests.inference.gguf.builder import (
    ARRAY,
    FLOAT32,
    INT8,
    INT32,
    STRING,
    TOKENS,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    Draft,
    Tensor,
    array,
    good_keys,
    pack_string,
    scalar,
)
from tests.inference.gguf.judging import code_of, judge

GOOD = Draft()
F32, Q4_0, I64 = 0, 2, 27


def keyed(**keys: bytes | None) -> bytes:
    """Give the good file with other keys."""
    return GOOD.with_keys(**keys).pack()


def with_tensors(*tensors: Tensor) -> bytes:
    """Give the good file with other tensors, and no data for them."""
    return replace(GOOD, tensors=tuple(replace(one, num_bytes=0) for one in tensors)).pack()


def raw_entry(key: bytes, rest: bytes) -> bytes:
    """Give the good file with one more entry, written as it is."""
    return replace(GOOD, num_keys=len(GOOD.keys) + 1, extra_keys=pack_string(key) + rest).pack()


def test_a_good_header_is_accepted() -> None:
    summary = judge(GOOD.pack())
    assert (summary.architecture, summary.num_vocab, summary.num_layers) == ("llama", 4, 1)
    assert summary.warnings == ()


@pytest.mark.parametrize("count", [2**64 - 1, 2**63, 2**61, 10**9, 4097])
def test_g01_key_counts(count: int) -> None:
    assert code_of(replace(GOOD, num_keys=count).pack()) == "kv_count"


@pytest.mark.parametrize("count", [2**64 - 1, 2**58, 10**8, 32_769, 5000])
def test_g02_tensor_counts(count: int) -> None:
    assert code_of(replace(GOOD, num_tensors=count).pack()) == "tensor_count"


@pytest.mark.parametrize("length", [2**64 - 1, 2**63, 1000, 2**30])
def test_g03_string_lengths(length: int) -> None:
    value = struct.pack("<I", STRING) + pack_string(b"", length)
    assert code_of(raw_entry(b"general.name", value)) == "string_len"
    assert code_of(replace(GOOD, extra_keys=pack_string(b"", length), num_keys=12).pack()) == (
        "string_len"
    )


@pytest.mark.parametrize("count", [2**60, 2**40, 5_000_000, 2**64 - 1])
@pytest.mark.parametrize("kind", [UINT8, STRING, UINT64])
def test_g04_array_counts(kind: int, count: int) -> None:
    assert code_of(raw_entry(b"a.b", array(kind, [], count))) == "array_bounds"


def test_g04_nested_arrays() -> None:
    nested = struct.pack("<IIQ", ARRAY, ARRAY, 1) * 1000
    assert code_of(raw_entry(b"a.b", nested)) == "array_bounds"


@pytest.mark.parametrize("kind", [13, 255, 2**32 - 1])
def test_g04_value_types(kind: int) -> None:
    assert code_of(raw_entry(b"a.b", struct.pack("<I", kind) + bytes(8))) == "kv_type"
    element = struct.pack("<IIQ", ARRAY, kind, 1) + bytes(8)
    assert code_of(raw_entry(b"a.b", element)) == "kv_type"


@pytest.mark.parametrize(
    "dims",
    [
        (2**63 - 1, 2, 1, 1),
        (2**32, 2**32, 1, 1),
        (2**64 - 1,),
        (2**63,),
        (0, 0),
        (4, 0),
        (2**33, 2**31 + 1),
    ],
)
def test_g05_shapes(dims: tuple[int, ...]) -> None:
    assert code_of(with_tensors(Tensor("a", dims))) == "tensor_shape"


@pytest.mark.parametrize("num_dims", [0, 5, 2**31])
def test_g05_numbers_of_dimensions(num_dims: int) -> None:
    assert code_of(with_tensors(Tensor("a", (4, 4), num_dims=num_dims))) == "tensor_shape"


@pytest.mark.parametrize(
    ("dims", "kind"),
    [
        ((2**61 + 1,), I64),
        ((32, (2**64 + 18) // (18 * 32) + 1), Q4_0),
        ((4611686018427387903,), F32),
    ],
)
def test_g06_g09_byte_sizes(dims: tuple[int, ...], kind: int) -> None:
    assert code_of(with_tensors(Tensor("a", dims, kind), Tensor("b", (4,), F32))) == "tensor_nbytes"


def test_g07_sum_of_two() -> None:
    size = 0x7FFFFFFFFFFFFFC0
    tensors = (Tensor("a", (size,)), Tensor("b", (size,), offset=size))
    assert code_of(with_tensors(*tensors)) == "data_size"


def test_g08_sum_of_many() -> None:
    size = (2**64 - 400) // 16 // 32 * 32
    tensors = [Tensor(f"t{place}", (size,), offset=place * size) for place in range(16)]
    assert code_of(with_tensors(*tensors)) == "data_size"


@pytest.mark.parametrize(
    "value",
    [*(scalar(UINT32, bad) for bad in (0, 3, 13, 2**31)), scalar(INT32, 32), scalar(STRING, "32")],
)
def test_g10_alignment(value: bytes) -> None:
    assert code_of(keyed(general__alignment=value)) == "alignment"


def test_g10_alignment_twice() -> None:
    entry = pack_string(b"general.alignment") + scalar(UINT32, 32)
    num_keys = len(GOOD.keys) + 2
    assert code_of(replace(GOOD, extra_keys=entry * 2, num_keys=num_keys).pack()) == "alignment"


def test_g11_truncated_at_any_byte() -> None:
    whole = GOOD.pack()
    for length in range(len(whole)):
        assert code_of(whole[:length]) != "ok"
    assert code_of(whole[:-1]) == "truncated"


@pytest.mark.parametrize("offset", [0, 64, 33, 2**63, 16])
def test_g12_offsets(offset: int) -> None:
    second = Tensor("b", (32,), offset=offset)
    assert code_of(replace(GOOD, tensors=(Tensor("a", (32,)), second)).pack()) == "tensor_offset"


@pytest.mark.parametrize("kind", [4, 5, 31, 32, 33, 36, 37, 38, 43, 255, -1, 2**31])
def test_g13_tensor_types(kind: int) -> None:
    assert code_of(with_tensors(Tensor("a", (256,), kind))) == "tensor_type"


def test_g13_rows_that_are_no_whole_blocks() -> None:
    assert code_of(with_tensors(Tensor("a", (33, 4), Q4_0))) == "tensor_shape"


def test_g14_duplicates() -> None:
    again = scalar(STRING, "llama")
    assert code_of(raw_entry(b"general.architecture", again)) == "duplicate"
    assert code_of(with_tensors(Tensor("a"), Tensor("a"))) == "duplicate"


def test_g14_a_hundred_thousand_keys() -> None:
    entries = b"".join(pack_string(b"k%d" % n) + scalar(UINT8, 0) for n in range(100_000))
    assert code_of(replace(GOOD, num_keys=100_000, extra_keys=entries).pack()) == "kv_count"


@pytest.mark.parametrize("key", ["scores", "token_type"])
@pytest.mark.parametrize("kind", [INT8, UINT8])
def test_g15_narrow_tokenizer_arrays(key: str, kind: int) -> None:
    values = array(kind, [1] * len(TOKENS))
    assert code_of(keyed(**{f"tokenizer__ggml__{key}": values})) == "tokenizer_array_type"


def test_g15_whole_numbered_scores_are_accepted() -> None:
    assert code_of(keyed(tokenizer__ggml__scores=array(INT32, [0] * len(TOKENS)))) == "ok"


@pytest.mark.parametrize("key", ["scores", "token_type"])
def test_g16_short_tokenizer_arrays(key: str) -> None:
    kind = FLOAT32 if key == "scores" else INT32
    short = array(kind, [0])
    assert code_of(keyed(**{f"tokenizer__ggml__{key}": short})) == "tokenizer_array_len"


@pytest.mark.parametrize("token", [len(TOKENS), 2**31, 2**32 - 2])
@pytest.mark.parametrize("name", ["bos", "eos", "eot", "fim_pre", "padding"])
def test_g17_special_tokens(name: str, token: int) -> None:
    key = f"tokenizer__ggml__{name}_token_id"
    assert code_of(keyed(**{key: scalar(UINT32, token)})) == "token_id_range"


@pytest.mark.parametrize("token", [b"<0x-1>", b"<0xZZ>", b"x" * 2**20])
def test_g18_tokens(token: bytes) -> None:
    tokens = array(STRING, (*TOKENS[:3], token))
    assert code_of(keyed(tokenizer__ggml__tokens=tokens)) == "tokenizer_token"


def test_g18_every_token_a_byte() -> None:
    types = array(INT32, [6] * len(TOKENS))
    assert code_of(keyed(tokenizer__ggml__token_type=types)) == "tokenizer_token"


@pytest.mark.parametrize(
    "name",
    ["block_count", "attention.head_count", "attention.head_count_kv", "embedding_length"],
)
@pytest.mark.parametrize(
    "value",
    [
        scalar(UINT32, 0),
        scalar(STRING, "8"),
        scalar(FLOAT32, 8.0),
        scalar(UINT32, 2**32 - 1),
        scalar(INT32, -1),
    ],
)
def test_g19_hyper_parameters(name: str, value: bytes) -> None:
    assert code_of(replace(GOOD, keys=good_keys() | {f"llama.{name}": value}).pack()) == "hparam"


def test_g19_infinite_numbers() -> None:
    assert code_of(keyed(llama__rope__freq_base=scalar(FLOAT32, float("inf")))) == "hparam"


def test_g20_one_head_count_per_layer() -> None:
    key = "llama__attention__head_count_kv"
    assert code_of(keyed(**{key: array(INT32, [2])})) == "ok"
    assert code_of(keyed(**{key: array(INT32, [0])})) == "ok"
    assert code_of(keyed(**{key: array(INT32, [2, 2])})) == "hparam"


@pytest.mark.parametrize("size", [0, 3, 4, 23])
def test_g22_tiny_files(size: int) -> None:
    assert code_of(GOOD.pack()[:size]) == "truncated"


@pytest.mark.parametrize("version", [0, 1, 4, 0x03000000, 2**31])
def test_g22_versions(version: int) -> None:
    assert code_of(replace(GOOD, version=version).pack()) == "version"


@pytest.mark.parametrize(
    ("lead", "words"),
    [
        (b"FUGG\x00\x00\x00\x03", "big-endian"),
        (b"PK\x03\x04", "ZIP"),
        (b"\x80\x02}q\x00", "pickle"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "LFS"),
        (b"\n<!DOCTYPE html><html>", "web page"),
        (b'\x40\x00\x00\x00\x00\x00\x00\x00{"a":', "safetensors"),
        (b'{"error": "not found"}', "JSON"),
        (b"GGML", "GGML"),
        (b"\x00" * 8, "not a GGUF"),
    ],
)
def test_g22_other_files_are_named(lead: bytes, words: str) -> None:
    from inference.gguf.verdict import GgufRejected

    with pytest.raises(GgufRejected, match=words) as caught:
        judge(lead + bytes(100))
    assert caught.value.code == "magic"


@pytest.mark.parametrize(
    ("architecture", "code"),
    [("clip", "unsupported_kind"), ("../x", "architecture"), ("no-such", "architecture")],
)
def test_g24_kinds(architecture: str, code: str) -> None:
    assert code_of(keyed(general__architecture=scalar(STRING, architecture))) == code


def test_g24_control_vectors_and_adapters() -> None:
    assert code_of(with_tensors(Tensor("direction.1073741824"))) == "unsupported_kind"
    assert code_of(keyed(general__type=scalar(STRING, "adapter"))) == "unsupported_kind"


@pytest.mark.parametrize("key", [b"", b"x" * 257, b"a\x00b", b"a b", "é".encode()])
def test_keys_are_printable_and_short(key: bytes) -> None:
    assert code_of(raw_entry(key, scalar(UINT8, 0))) == "key"


def test_truth_values_are_0_or_1() -> None:
    assert code_of(raw_entry(b"a.b", struct.pack("<IB", 7, 2))) == "kv_value"


def test_a_file_without_tensors_or_tokenizer_cannot_be_served() -> None:
    assert code_of(with_tensors()) == "tensor_count"
    assert code_of(keyed(tokenizer__ggml__model=None)) == "tokenizer"
    assert code_of(keyed(tokenizer__ggml__tokens=None)) == "tokenizer_array_type"


def test_the_token_table_fits_the_vocabulary() -> None:
    assert code_of(replace(GOOD, tensors=(Tensor(dims=(4, 5)),)).pack()) == "tensor_shape"


def test_trailing_bytes_are_noted() -> None:
    assert "bytes after the last tensor" in judge(GOOD.pack() + bytes(100)).warnings[0]


def shard(number: int, count: int, total: int, keys: dict[str, bytes]) -> bytes:
    """Give shard ``number`` (from 0), holding one tensor."""
    split = {
        "split.no": scalar(UINT16, number),
        "split.count": scalar(UINT16, count),
        "split.tensors.count": scalar(INT32, total),
    }
    name = "token_embd.weight" if number == 0 else f"blk.{number - 1}.attn_norm.weight"
    dims = (4, 4) if number == 0 else (32,)
    return Draft(keys=keys | split, tensors=(Tensor(name, dims),)).pack()


def test_g23_shards_in_any_order() -> None:
    first, second = shard(0, 2, 2, good_keys()), shard(1, 2, 2, {})
    assert judge(first, second).file_order == (0, 1)
    assert judge(second, first).file_order == (1, 0)


def test_g23_incomplete_or_mixed_shards() -> None:
    first, second = shard(0, 2, 2, good_keys()), shard(1, 2, 2, {})
    huge = shard(0, 65535, 2, good_keys())
    unequal = shard(1, 2, 3, {})
    for files in (
        [first],
        [second],
        [first, first],
        [huge],
        [first, second, second],
        [first, unequal],
    ):
        assert code_of(*files) == "shards_incomplete"
    for files in ((GOOD.pack(), GOOD.pack()), (first, GOOD.pack())):
        with pytest.raises(GgufRejected) as caught:
            judge(*files)
        assert caught.value.code == "shards_incomplete"
        assert "Give each model by itself" in caught.value.reason
    assert code_of(keyed(split__count=scalar(UINT32, 1))) == "split"
