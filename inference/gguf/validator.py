"""Judge the files of one model by their headers alone: the gate before any native code."""

from collections.abc import Sequence

from inference.gguf.checks.hparams import check_hparams
from inference.gguf.checks.kind import check_kind, check_shards, check_split_keys
from inference.gguf.checks.template import check_templates
from inference.gguf.checks.tensors import check_embedding_table, check_tensors, count_blocks
from inference.gguf.checks.tokenizer import check_tokenizer
from inference.gguf.header import read_header
from inference.gguf.summary import ModelSummary, summarize
from inference.gguf.values import Header


def validate_files(files: Sequence[tuple[int, int]]) -> ModelSummary:
    """Check open files, given as (descriptor, size) in any order.

    Raises GgufRejected for the first fault found; what it accepts is safe to hand to the probe.
    """
    headers = [read_header(fd, size_bytes) for fd, size_bytes in files]
    for header in headers:
        check_split_keys(header)
    file_order = tuple(sorted(range(len(headers)), key=lambda place: headers[place].split[0]))
    headers = [headers[place] for place in file_order]
    first = headers[0]
    if first.split[0] == 0:
        check_kind(first)
    check_shards(headers)
    return summarize(headers, _check_contents(headers), file_order)


def _check_contents(headers: list[Header]) -> int:
    """Check what the headers say of the model; give the size of the vocabulary."""
    first = headers[0]
    check_hparams(first)
    num_vocab = check_tokenizer(first)
    for header in headers:
        check_tensors(header)
    check_embedding_table(first, num_vocab)
    check_templates(first)
    num_blocks = count_blocks([tensor for header in headers for tensor in header.tensors])
    stated = first.integer(f"{first.architecture}.block_count")
    if num_blocks != stated:
        first.warnings.append(f"{num_blocks} layers have tensors, {stated} are stated.")
    return num_vocab
