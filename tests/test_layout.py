"""Test the layout: no folder has more than 30 files of one kind, and the long files exist."""

import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import pytest

from tests.conftest import FIRST, FORKING, TESTS, TOGETHER

FILES_MAX = 30
"""Files with one suffix in one folder."""
UNLIMITED = ("docs/adr/", "tests/data/")
"""Decision records are a numbered list; data has the files that its subject asks for."""


def crowded_folders(names: Iterable[str]) -> list[str]:
    """Return a line for each folder with too many files; `names` are paths below the root."""
    paths = (PurePosixPath(name) for name in names if not name.startswith(UNLIMITED))
    counts = Counter((str(path.parent), path.suffix) for path in paths)
    return [
        f"{folder}/ has {count} {suffix or 'plain'} files"
        for (folder, suffix), count in sorted(counts.items())
        if count > FILES_MAX
    ]


def test_no_folder_is_crowded(repository: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("this is no checkout of git")
    names = [name for name in listed.stdout.split("\0") if name and (repository / name).exists()]
    assert names
    assert crowded_folders(names) == []


def test_files_named_for_the_workers_exist() -> None:
    named = {*FIRST, *FORKING, *TOGETHER.keys(), *TOGETHER.values()}
    assert [name for name in named if not (TESTS / name).is_file()] == []
    assert not TOGETHER.keys() & set(TOGETHER.values()), "a partner runs in its own place"


def test_crowded_folder_is_named() -> None:
    full = [f"impl/log/part_{number}.py" for number in range(FILES_MAX)]
    assert crowded_folders([*full, "impl/log/README.md", "impl/part.py"]) == []
    assert crowded_folders([*full, "impl/log/one_more.py"]) == ["impl/log/ has 31 .py files"]
    assert crowded_folders([f"docs/adr/{number:04}.md" for number in range(100)]) == []
