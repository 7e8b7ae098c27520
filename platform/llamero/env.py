"""Read the environment: every value typed, every bad value named and fatal at start."""

import os
from pathlib import Path
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

_FALSE_WORDS = ("false", "off", "no", "n", "0", "")


class Environment(environ.Env):  # type: ignore[misc]
    """Names the variable whose value is no good, and takes nothing but yes or no for a switch."""

    def get_value(self, var: str, cast: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Give a typed value; raises ImproperlyConfigured with the name."""
        given = os.environ.get(var, "")
        words = (*self.BOOLEAN_TRUE_STRINGS, *_FALSE_WORDS)
        if cast is bool and given.strip().lower() not in words:
            raise ImproperlyConfigured(f"{var} is {given!r}, but must be true or false.")
        try:
            return super().get_value(var, cast, *args, **kwargs)
        except ValueError:
            kind = "a whole number" if cast is int else "different"
            raise ImproperlyConfigured(f"{var} is {given!r}, but must be {kind}.") from None


env = Environment()
BASE_DIR = Path(__file__).resolve().parent.parent.parent


def read_path(name: str, default: Path) -> Path:
    """Give an absolute path from the environment, or the default."""
    value = env.str(name, default="")
    return Path(value).expanduser().resolve() if value else default


def read_home() -> Path:
    """Give the folder that holds all state, made for this user alone if it is missing."""
    home = read_path("LLAMERO_HOME", BASE_DIR / "var")
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(f"Cannot keep state in {home}: {error.strerror}.") from None
    return home
