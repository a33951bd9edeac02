"""Name the directories of the board: libraries, compiled adapters, results of runs."""

import os
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

__all__ = [
    "SOURCES",
    "cache_directory",
    "go_program",
    "go_reproduction",
    "java_directory",
    "python_packages",
    "results_directory",
    "rust_program",
    "sources_digest",
]

SOURCES = Path(__file__).resolve().parent


def cache_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of everything that the board builds.

    It is `board` in `$XDG_CACHE_HOME/tornpage`, or in `~/.cache/tornpage`.
    """
    home = environment.get("XDG_CACHE_HOME", "")
    base = Path(home) if os.path.isabs(home) else Path(environment.get("HOME") or Path.home()) / ".cache"
    return base / "tornpage" / "board"


def sources_digest(ecosystem: str) -> str:
    """Return the digest of the sources and the manifest of the adapters of an ecosystem."""
    files = [path for path in sorted((SOURCES / ecosystem).rglob("*")) if path.is_file()]
    return sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()[:12]


def python_packages() -> Path:
    """Return the directory of Python libraries, one for each interpreter version."""
    return cache_directory() / f"python{sys.version_info.major}.{sys.version_info.minor}"


def go_program() -> Path:
    """Return the program of the Go adapters."""
    return cache_directory() / f"go-{sources_digest('go')}" / "board"


def rust_program() -> Path:
    """Return the program of the Rust adapters."""
    return cache_directory() / f"rust-{sources_digest('rust')}" / "board"


def java_directory() -> Path:
    """Return the directory of Java `classes`, and of jars in `lib` and `later`."""
    return cache_directory() / f"java-{sources_digest('java')}"


def go_reproduction(source: Path) -> Path:
    """Return the program of a reproduction in Go.

    Its directory is named by the digest of its source and of the manifest.
    """
    text = source.read_bytes() + (SOURCES / "go" / "go.mod").read_bytes()
    return cache_directory() / f"reproduction-{sha256(text).hexdigest()[:12]}" / source.stem


def results_directory() -> Path:
    """Return the directory in which results of runs are kept by default."""
    return cache_directory() / "results"
