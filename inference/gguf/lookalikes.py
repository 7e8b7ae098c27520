"""What a file without the GGUF magic probably is, in words that help."""

_LEADS = (
    (b"version https://git-lfs", "a Git LFS pointer, not the model: fetch the file itself"),
    (b"PK\x03\x04", "a ZIP archive (perhaps a PyTorch checkpoint): give the GGUF itself"),
    (b"\x1f\x8b", "a gzip archive: unpack it first"),
    (b"\xfd7zXZ", "an xz archive: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive: unpack it first"),
    (b"7z\xbc\xaf", "a 7z archive: unpack it first"),
    (b"\x80\x02", "a Python pickle, which is never loaded"),
    (b"\x80\x04", "a Python pickle, which is never loaded"),
    (b"FUGG", "a byte-swapped (big-endian) GGUF: convert it for little-endian machines"),
    (b"ggml", "an old GGML file: convert it to GGUF"),
    (b"lmgg", "an old GGML file: convert it to GGUF"),
    (b"GGML", "an old GGML file: convert it to GGUF"),
    (b"tjgg", "an old GGJT file: convert it to GGUF"),
    (b"fmgg", "an old GGMF file: convert it to GGUF"),
)


def describe_lookalike(lead: bytes) -> str:
    """Say what a file that begins with ``lead`` (its first bytes) is, if it is no GGUF."""
    for magic, words in _LEADS:
        if lead.startswith(magic):
            return f"This is {words}."
    text = lead.lstrip().lower()
    if text.startswith((b"<!doctype", b"<html", b"<?xml", b"<head", b"<body")):
        return "This is a web page, not a model: the download link led to an HTML page."
    if lead[8:9] == b"{" and int.from_bytes(lead[:8], "little") < 2**32:
        return "This is a safetensors file: convert it to GGUF."
    if text.startswith((b"{", b"[")):
        return "This is a JSON file, not a model."
    return "This is not a GGUF file: it does not begin with “GGUF”."
