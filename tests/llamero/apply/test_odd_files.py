"""Files that are no YAML, hardly any, or a trap: each is told in words, none costs a crash."""

from pathlib import Path

import pytest

from llamero.apply.document import Document, read_document
from llamero.apply.mistakes import ApplyError, Mistakes

BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x]"]
    + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]" for n in range(1, 12)]
)
MERGES = "\n".join(
    ["b0: &b0 {k: v}"]
    + [f"b{n}: &b{n} {{k{n}: v, <<: [{', '.join([f'*b{n - 1}'] * 8)}]}}" for n in range(1, 12)]
)

FILES = "models:\n- &m {id: a, files: [" + "{}, " * 1000 + "]}\n" + "- *m\n" * 1000

DEPLOYMENTS = "models[0].deployments"


def read(folder: Path, text: str | bytes) -> Document:
    """Read a text as a file; raises ApplyError with all its mistakes."""
    path = folder / "models.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    mistakes = Mistakes()
    document = read_document(path, mistakes)
    mistakes.tell()
    return document


def mistakes_of(folder: Path, text: str | bytes) -> list[str]:
    """Give what is said of a text."""
    with pytest.raises(ApplyError) as caught:
        read(folder, text)
    return caught.value.lines


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("models:\n\t- id: a", "is no YAML: line 2, column 1: found character '\\t' that cannot"),
        ("models: [{id: a, id: b}]", "is no YAML: line 1, column 18: id is there twice"),
        ("a: 1\n---\nb: 2", "line 2, column 1: but found another document"),
        ("models: [", "line 1, column 10: "),
        ("*a", "line 1, column 1: found undefined alias"),
        ("models: &a [*a]", "line 1, column 13: this is an alias of what it is in"),
        ("models: &a [{id: *a}]", "line 1, column 18: this is an alias of what it is in"),
        (BOMB, "line 6, column 5: this has more than 50,000 values, with what aliases stand for"),
        (MERGES, "line 6, column 21: this has more than 50,000 values, with what"),
        (FILES, "this has more than 50,000 values, with what aliases stand for"),
        ("models:\n" + "- {id: a}\n" * 20_000, "this has more than 50,000 values"),
        ("? [a, b]\n: c", "line 1, column 3: a field's name must be a text"),
        ("models: " + "[" * 100_000, ": this is more than 40 levels deep"),
        ("- " * 5000, "this is more than 40 levels deep"),
        ("models: !!python/object/apply:os.system [x]", "could not determine a constructor"),
        ("models: !!int x", "line 1, column 9: this is no int"),
        ('models: "\\U00110000"', "the number behind a \\U is no character's"),
        ('models: "\\UFFFFFFFF"', "the number behind a \\U is no character's"),
        ("models: !!bool x", "line 1, column 9: this is no bool"),
        ("models: !!timestamp x", "line 1, column 9: this is no timestamp"),
        ("models: !!binary x", "is no YAML: line 1"),
        ("models: !!float x", "line 1, column 9: this is no float"),
        ("models: " + "9" * 5000, "line 1, column 9: this is no int"),
        ('models: "\\0"', "line 1, column 9: this has a character that is none"),
        ('models: "\\ud800"', "line 1, column 9: this has a character that is none"),
        (b"models: \xff\xfe", "is no YAML: byte 9: invalid start byte; it must be UTF-8"),
        (b"models: \x00", "is no YAML: byte 9: special characters are not allowed"),
        (b"GGUF\x03\x00\x00\x00" * 100, "is no YAML: byte 5"),
        ("x" * (2**20 + 1), "is larger than a megabyte"),
    ],
)
def test_what_is_no_yaml_is_told_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    [line] = mistakes_of(tmp_path, text)
    assert words in line
    assert "byte string" not in line


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("5", ["must be fields with values, and is a whole number"]),
        ("[]", ["must be fields with values, and is a list"]),
        ("false", ["must be fields with values, and is true or false"]),
        ("models:", ["models: must be a list, and is empty"]),
        ("models: {}", ["models: must be a list, and is fields with values"]),
        ("models: [{id: 2024-13-45, title: 1:30, files: [x]}]", None),
        (
            "models: [{id: 5, title: 1.5, kind: [x], aliases: [a, 7], files: [3, {path: true}]}]",
            [
                "models[0].id: must be a text, and is a whole number: write it in quotes",
                "models[0].title: must be a text, and is a number: write it in quotes",
                "models[0].kind: must be a text, and is a list",
                "models[0].aliases[1]: must be a text, and is a whole number: write it in quotes",
                "models[0].files[0]: must be fields with values, and is a whole number",
                "models[0].files[1].path: must be a text, and is true or false: write it in quotes",
            ],
        ),
        (
            "models: [{id: a, deployments: [{}, {name: 5}, {name: b}, 6, {name: b}]}]",
            [
                "models[0].deployments[3]: must be fields with values, and is a whole number",
                "models[0].deployments[0].name: is missing",
                "models[0].deployments[1].name: must be a text in quotes",
                f"{DEPLOYMENTS}[4].name: b is there already, at {DEPLOYMENTS}[2].name",
            ],
        ),
        (
            "models: [{id: a, aliases: [b]}, {id: A, aliases: [b]}, {id: b}]",
            [
                "models[1].id: a is there already, at models[0].id",
                "models[1].aliases[0]: b is there already, at models[0].aliases[0]",
                "models[2].id: b is there already, at models[0].aliases[0]",
            ],
        ),
        (
            "keys: [{name: a, user: u}, {name: a, user: u}, {name: a, team: u}, {enabled: yes}]",
            [
                "keys[1].name: a of u is there already, at keys[0].name",
                "keys[2].name: a of u is there already, at keys[0].name",
                "keys[3].name: is missing",
                "keys[3].enabled: must be true or false, and is a text",
            ],
        ),
    ],
)
def test_wrong_types_are_told_each_for_itself(
    tmp_path: Path, text: str, lines: list[str] | None
) -> None:
    found = mistakes_of(tmp_path, text)
    if lines is not None:
        assert found == lines


def test_words_are_what_they_look_like(tmp_path: Path) -> None:
    document = read(
        tmp_path,
        "models: [{id: 2024-01-02, title: off, description: 010, deployments: [{name: a,"
        " flash_attention: on, num_slots: 1_0, share: +7, target_ttft_seconds: 1e1}]}]",
    )
    [model] = document.models
    assert (model.id, model.title, model.description) == ("2024-01-02", "off", "010")
    assert model.deployments == [
        {"name": "a", "flash_attention": "on", "num_slots": "1_0"}
        | {"share": 7, "target_ttft_seconds": 10.0}
    ]


def test_settings_can_be_written_once(tmp_path: Path) -> None:
    document = read(
        tmp_path,
        """
models:
  - id: a
    deployments:
      - &first {name: a, num_slots: 2, share: 1}
      - {<<: *first, name: b}
      - {<<: [*first, *first], share: 3, name: c}
""",
    )
    assert document.models[0].deployments == [
        {"name": "a", "num_slots": 2, "share": 1},
        {"name": "b", "num_slots": 2, "share": 1},
        {"name": "c", "num_slots": 2, "share": 3},
    ]


def test_of_very_many_mistakes_the_first_are_told(tmp_path: Path) -> None:
    text = "models:\n" + "- {id: a, b: c}\n" * 1000
    lines = mistakes_of(tmp_path, text)
    assert len(lines) == 101
    assert lines[0].startswith("models[0].b: is no field of this entry; there are aliases, ")
    assert lines[-1] == "and more: these are the first 100"


def test_a_file_may_be_empty_and_may_begin_with_a_mark(tmp_path: Path) -> None:
    for text in (
        b"",
        b"---\n",
        b"# nothing\n",
        b"\xef\xbb\xbfmodels: []",
        "models: []".encode("utf-16"),
    ):
        assert read(tmp_path, text) == Document()
