"""Which build of llama.cpp is installed, known without loading it."""

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution

_PACKAGE = "llama-cpp-python"
_LIBRARIES = (".so", ".dylib", ".dll")


@cache
def engine_build() -> str:
    """Name the installed build: its version, and a hash of its libraries' hashes.

    Empty where there is none: what is there decides what a probe is worth, so a probe by another
    build counts for nothing.
    """
    try:
        package = distribution(_PACKAGE)
    except PackageNotFoundError:
        return ""
    hashes = sorted(
        f"{file.name}={file.hash.value}"
        for file in package.files or ()
        if file.suffix in _LIBRARIES and file.hash
    )
    return f"{package.version}+{hashlib.sha256(' '.join(hashes).encode()).hexdigest()[:12]}"
