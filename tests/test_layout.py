"""The layout's traps: platform/ must not shadow the standard library, the web image no engine."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import ROOT, child_environment

SOURCE_FOLDERS = ("platform", "inference", "models_registry", "tests", "benchmarks")
MAX_LINES = 400


def python_files() -> list[Path]:
    return [
        path
        for folder in SOURCE_FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        if "migrations" not in path.parts
    ]


def run_python(program: str, tmp_path: Path) -> str:
    environment = child_environment(LLAMERO_HOME=str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.strip()


def test_platform_is_a_source_root_and_never_a_package() -> None:
    entries = {path.name for path in (ROOT / "platform").iterdir()}
    assert entries - {"__pycache__"} == {"llamero"}


def test_the_standard_library_keeps_its_platform_module(tmp_path: Path) -> None:
    found = run_python("import platform, uuid; print(platform.system())", tmp_path)
    assert found


def test_the_gateway_leaves_engine_and_numpy_alone(tmp_path: Path) -> None:
    program = (
        "import sys, llamero.asgi; "
        "print(sorted({'llama_cpp', 'numpy', 'inference.engine'} & sys.modules.keys()))"
    )
    assert run_python(program, tmp_path) == "[]"


def test_the_supervisor_leaves_django_alone(tmp_path: Path) -> None:
    program = "import sys, llamero.supervisor.supervisor; print('django' in sys.modules)"
    assert run_python(program, tmp_path) == "False"


@pytest.mark.parametrize("folder", ["inference", "models_registry", "platform/llamero"])
def test_every_folder_with_code_is_a_package(folder: str) -> None:
    folders = {path.parent for path in (ROOT / folder).rglob("*.py")}
    assert [str(path) for path in folders if not (path / "__init__.py").exists()] == []


def test_no_file_is_too_long_to_read() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in python_files()}
    assert {str(path): n for path, n in lengths.items() if n > MAX_LINES} == {}


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in python_files()
        if (text := path.read_text()).strip() and ast.get_docstring(ast.parse(text)) is None
    ]
    assert silent == []


def test_every_requirement_is_pinned() -> None:
    lines = [
        line.split("#")[0].strip()
        for name in ("requirements.txt", "requirements-dev.txt", "requirements-production.txt")
        for line in (ROOT / name).read_text().splitlines()
    ]
    loose = [line for line in lines if line and not line.startswith("-r ") and "==" not in line]
    assert loose == []
