"""Home, lock and port: what may keep Llamero from starting, and how it says so."""

import socket
import stat
from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from llamero.sockets import MAX_SOCKET_PATH_BYTES, make_private_folder, valkey_socket
from llamero.supervisor.home import Home, StartRefused
from llamero.supervisor.ports import browser_host, check_port, read_port
from llamero.supervisor.supervisor import supervise


def test_prepare_makes_private_folders(tmp_path: Path) -> None:
    home = Home(tmp_path / "state")
    home.prepare()
    assert stat.S_IMODE(home.run.stat().st_mode) == 0o700


def test_a_second_supervisor_of_one_home_is_refused_by_name(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.prepare()
    with home.lock(), pytest.raises(StartRefused, match=r"already runs in .*\(process \d+\)"):
        home.lock()
    home.lock().close()


def test_a_short_home_keeps_its_socket_inside() -> None:
    assert valkey_socket(Path("/srv/llamero")) == Path("/srv/llamero/run/valkey.sock")


def test_a_long_home_gets_a_short_socket_of_its_own() -> None:
    one = valkey_socket(Path("/srv") / ("a" * 120))
    other = valkey_socket(Path("/srv") / ("b" * 120))
    assert len(bytes(one)) <= MAX_SOCKET_PATH_BYTES
    assert one != other


def test_a_private_folder_is_closed_to_others_again(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    make_private_folder(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_private_folder_is_never_a_link(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "target")
    with pytest.raises(PermissionError):
        make_private_folder(link)


@pytest.mark.parametrize("text", ["0", "65536", "-1", "http", ""])
def test_what_is_no_port_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="from 1 to 65535"):
        read_port(text)
    assert read_port("8000") == 8000


def test_a_home_that_cannot_be_written_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    assert supervise(Path("/dev/null/home"), host="127.0.0.1", port=8000) == 1
    assert "Cannot keep state in /dev/null/home: Not a directory." in capfd.readouterr().out


def test_a_taken_port_is_named_with_its_cure() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(StartRefused, match=rf"(?s)Port {port} .*is taken.*PORT={port + 1}"):
            check_port("127.0.0.1", port)


def test_a_host_that_is_not_ours_is_named() -> None:
    with pytest.raises(StartRefused, match=r"Cannot listen on 203\.0\.113\.1"):
        check_port("203.0.113.1", 8000)


def test_a_browser_is_sent_to_a_real_host() -> None:
    assert browser_host("0.0.0.0") == "127.0.0.1"
    assert browser_host("::1") == "[::1]"
    assert browser_host("example.org") == "example.org"
