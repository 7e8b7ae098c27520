"""Whether an address is free, before anything heavy starts."""

import errno
import socket
from argparse import ArgumentTypeError

from llamero.supervisor.home import StartRefused


def read_port(text: str) -> int:
    """Read a port from the command line or the environment."""
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise ArgumentTypeError(f"{text!r} is no port: give a number from 1 to 65535")
    return int(text)


def check_port(host: str, port: int) -> None:
    """Raise StartRefused, with the cure, when nothing can listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host.strip("[]"), port))
        except OSError as error:
            raise StartRefused(_cure(host, port, error)) from None


def _cure(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"Port {port} on {host} is taken by another program.\n"
            f"Stop that program, or choose another port: make run PORT={port + 1}"
        )
    if error.errno == errno.EACCES:
        return (
            f"This user may not listen on port {port}.\n"
            "Choose a port above 1023: make run PORT=8000"
        )
    return f"Cannot listen on {host}, port {port}: {error.strerror or error}.\nSet HOST and PORT."


def browser_host(host: str) -> str:
    """Give the host that a browser on this machine should use."""
    if host in ("0.0.0.0", "::", ""):
        return "127.0.0.1"
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def is_listening(host: str, port: int) -> bool:
    """Whether something accepts connections there."""
    try:
        socket.create_connection((browser_host(host).strip("[]"), port), 0.5).close()
    except OSError:
        return False
    return True
