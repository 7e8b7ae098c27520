"""What a person reads when everything is up."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from llamero.supervisor.home import Home
from llamero.supervisor.ports import browser_host


def welcome(home: Home, host: str, port: int, chat_model: str, failures: Sequence[str]) -> str:
    """Give addresses, where the secrets are, and a request to paste; first, what went wrong."""
    site = f"http://{browser_host(host)}:{port}"
    lines = [
        "",
        "Llamero is ready." if not failures else "Llamero is ready, but not all of it:",
        *(f"  {failure}" for failure in failures),
        "",
        f"  Playground  {site}/playground",
        f"  Admin       {site}/admin/",
        f"  API         {site}/v1",
        f"  Login       admin, password in {short_path(home.admin_password)}",
        f"  API key     in {short_path(home.demo_key)}",
        "",
    ]
    if chat_model and home.demo_key.exists():
        lines += ["Try it:", "", *curl_lines(site, home.demo_key, chat_model), ""]
    return "\n".join(lines)


def curl_lines(site: str, key_file: Path, model: str) -> list[str]:
    """Give a chat request for a POSIX shell; the key stays in its file."""
    body = f'{{"model": "{model}", "messages": [{{"role": "user", "content": "Say hello."}}]}}'
    return [
        f"  curl {site}/v1/chat/completions \\",
        f'    -H "Authorization: Bearer $(cat {shlex.quote(short_path(key_file))})" \\',
        '    -H "Content-Type: application/json" \\',
        f"    -d '{body}'",
    ]


def short_path(path: Path) -> str:
    """Give the path as seen from here, where it lies below."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
