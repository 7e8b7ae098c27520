"""What the documents name is there, and what is there they name."""

import re
from pathlib import Path

from tests.processes import ROOT

# Told to processes by the processes that start them.
INTERNAL = {"LLAMERO_PARENT_PID", "LLAMERO_REPLICA_SPEC", "LLAMERO_REPLICA_FAILURES"}
# Where the examples that pages show have a client's key.
CLIENTS = {"LLAMERO_API_KEY"}


def _tables(*paths: str) -> str:
    lines = [line for path in paths for line in (ROOT / path).read_text().splitlines()]
    return "\n".join(line for line in lines if line.startswith("|"))


def _documents() -> list[Path]:
    return [ROOT / "README.md", ROOT / "benchmarks" / "README.md", *(ROOT / "docs").glob("*.md")]


def _sources() -> list[Path]:
    return [
        path
        for folder in ("platform", "inference", "models_registry")
        for path in (ROOT / folder).rglob("*.py")
    ]


def test_every_setting_is_in_a_table_and_every_row_is_a_setting() -> None:
    sources = "\n".join(path.read_text() for path in _sources())
    read = set(re.findall(r"""["'](LLAMERO_[A-Z_]*[A-Z])["']""", sources)) - INTERNAL - CLIENTS
    told = set(
        re.findall(
            r"LLAMERO_[A-Z_]*[A-Z]",
            _tables(
                "README.md",
                "docs/nodes.md",
                "docs/people.md",
                "docs/registry.md",
                "docs/sign-in.md",
            ),
        )
    )
    assert told == read


def test_every_command_is_in_the_table() -> None:
    rows = _tables("README.md")
    for path in _sources():
        if path.parent.name == "commands" and path.stem != "__init__":
            assert re.search(rf"`{path.stem}[ `]", rows), path.stem


def test_every_benchmark_is_in_their_table() -> None:
    rows = _tables("benchmarks/README.md")
    programs = {
        path.name
        for path in (ROOT / "benchmarks").glob("*.py")
        if "if __name__" in path.read_text()
    }
    assert {name for name in programs if f"`{name}" not in rows} == set()


def test_every_folder_is_in_the_table_of_the_architecture() -> None:
    rows = _tables("docs/architecture.md")
    folders = {
        f"{parent}/{path.parent.name}"
        for parent in ("platform/llamero", "inference")
        for path in (ROOT / parent).glob("*/__init__.py")
    }
    assert {folder for folder in folders if f"`{folder}`" not in rows} == set()


def test_every_file_that_is_named_is_there() -> None:
    folders = ("platform", "inference", "models_registry", "tests", "benchmarks")
    known = [f"/{path}" for folder in folders for path in (ROOT / folder).rglob("*.*")]
    for document in _documents():
        for name in re.findall(r"`([\w/]+/\w+\.(?:py|lua))\b", document.read_text()):
            assert any(path.endswith(f"/{name}") for path in known), (document.name, name)


def test_every_target_of_make_that_is_named_is_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for document in _documents():
        named = re.findall(r"(?:^|`|&& )make ([a-z-]+)\b", document.read_text(), re.MULTILINE)
        assert set(named) <= targets, document.name


def test_every_document_is_linked_and_every_link_leads_somewhere() -> None:
    documents = {ROOT / "README.md", *(ROOT / "docs").glob("*.md")}
    linked = set()
    for document in documents:
        for target in re.findall(r"\]\(([^)#:\s]+)\)", document.read_text()):
            found = (document.parent / target).resolve()
            assert found.exists(), (document.name, target)
            linked |= {found} - {document}
    assert documents - linked == {ROOT / "README.md"}
