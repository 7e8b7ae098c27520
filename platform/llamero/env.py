"""Read the environment: every value typed, every bad value named and fatal at start."""

from pathlib import Path

import environ

env = environ.Env()
BASE_DIR = Path(__file__).resolve().parent.parent.parent


def read_path(name: str, default: Path) -> Path:
    """Give an absolute path from the environment, or the default."""
    value = env.str(name, default="")
    return Path(value).expanduser().resolve() if value else default


def read_home() -> Path:
    """Give the folder that holds all state, made for this user alone if it is missing."""
    home = read_path("LLAMERO_HOME", BASE_DIR / "var")
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    return home
