"""The sandbox that renders chat templates."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from inference.text import render_child
from inference.text.render_pool import RenderError, RenderPool

CHATML = (
    "{% for message in messages %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
USER = [{"role": "user", "content": "hi"}]


@pytest.fixture(scope="module")
def pool() -> Iterator[RenderPool]:
    pool = RenderPool()
    yield pool
    pool.close()


def test_renders_chatml(pool: RenderPool) -> None:
    text = pool.render(CHATML, USER, {"add_generation_prompt": True})
    assert text == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"


def test_blocks_are_trimmed_and_loops_can_break(pool: RenderPool) -> None:
    template = (
        "{% for i in range(9) %}\n  {% if i == 2 %}{% break %}{% endif %}\n{{ i }}{% endfor %}"
    )
    assert pool.render(template, USER, {}) == "01"


def test_json_is_written_as_models_were_trained(pool: RenderPool) -> None:
    assert (
        pool.render("{{ v | tojson }}", USER, {"v": {"z": "<é>", "a": 1}}) == '{"z": "<é>", "a": 1}'
    )
    assert pool.render("{{ v | tojson(indent=1) }}", USER, {"v": [1]}) == "[\n 1\n]"


def test_generation_tag_and_clock_are_known(pool: RenderPool) -> None:
    template = "{% generation %}{{ strftime_now('%Y') }}{% endgeneration %}"
    assert pool.render(template, USER, {}).startswith("20")


@pytest.mark.parametrize("content", [None, [], ""])
def test_absent_content_is_empty_text(pool: RenderPool, content: object) -> None:
    assert (
        pool.render("[{{ messages[0].content }}]", [{"role": "a", "content": content}], {}) == "[]"
    )


def test_parts_are_flattened_for_templates_that_want_text(pool: RenderPool) -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert "user\na\nb<" in pool.render(CHATML, [{"role": "user", "content": parts}], {})


def test_text_becomes_parts_for_templates_that_want_parts(pool: RenderPool) -> None:
    template = "{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}"
    assert pool.render(template, USER, {}) == "hi"


def test_other_parts_are_refused(pool: RenderPool) -> None:
    message = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}
    with pytest.raises(RenderError, match="Only text parts"):
        pool.render(CHATML, [message], {})


def test_a_template_can_refuse_messages(pool: RenderPool) -> None:
    with pytest.raises(RenderError, match=r"^roles must alternate$"):
        pool.render("{{ raise_exception('roles must alternate') }}", USER, {})


def test_long_messages_of_a_template_are_cut(pool: RenderPool) -> None:
    with pytest.raises(RenderError) as caught:
        pool.render("{{ raise_exception('x' * 10000) }}", USER, {})
    assert len(str(caught.value)) == 500


HOSTILE = {
    "loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "huge string": "{{ 'a' * 10**9 }}",
    "huge output": "{% set x = 'a' * 10**6 %}{% for a in range(300) %}{{ x }}{% endfor %}",
    "big integer": "{{ 9 ** (9 ** 9) }}",
    "recursive macro": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "globals": "{{ lipsum.__globals__['os'].popen('touch CANARY').read() }}",
    "init": "{{ cycler.__init__.__globals__.os.system('touch CANARY') }}",
    "mro": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "attr": "{{ (''|attr('__class__')).mro() }}",
    "format": "{{ ('{0.__class__.__init__.__globals__}'.format)(self) }}",
    "indirect format": "{% set f = '{0.__class__}'.format %}{{ [0] | map(f) | list }}",
    "mutation": "{{ messages.append(1) }}",
    "include": "{% include '/etc/passwd' %}",
    "syntax": "{% if %}" * 20000,
    "nesting": "{% if 1 %}" * 5000 + "{% endif %}" * 5000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_templates_end_soon_and_the_next_render_works(
    pool: RenderPool, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    began = time.monotonic()
    with pytest.raises(RenderError) as caught:
        pool.render(HOSTILE[name], USER, {})
    assert time.monotonic() - began < 10
    assert len(str(caught.value)) <= 500
    assert "Traceback" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    assert pool.render("{{ messages[0].content }}", USER, {}) == "hi"


def test_a_killed_renderer_is_replaced(pool: RenderPool) -> None:
    pool.render("x", USER, {})
    for process in pool._idle:
        process._process.kill()
    assert pool.render("{{ messages[0].content }}", USER, {}) == "hi"


def test_the_child_sees_no_secrets(pool: RenderPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLAMERO_SECRET_KEY", "s3cret")
    fresh = RenderPool()
    try:
        fresh.render("x", USER, {})
        (process,) = fresh._idle
        environ = Path(f"/proc/{process._process.pid}/environ").read_bytes()
    finally:
        fresh.close()
    assert b"s3cret" not in environ


def test_the_child_cannot_open_files_or_processes() -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(Path(render_child.__file__).parent)!r})\n"
        "import os, render_child\n"
        "render_child.limit_resources()\n"
        "try:\n open('/etc/hostname')\nexcept OSError: print('closed')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "closed\n"
