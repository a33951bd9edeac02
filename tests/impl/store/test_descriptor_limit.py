"""Test a store with more files than the soft limit of descriptors: it works, as on a JVM.

At the hard limit it reports the limit.
"""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PROGRAM = """
    import resource, sys
    from tornpage.impl.io.os_files import OsFiles
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]), int(sys.argv[3])))
    files, kept = OsFiles(), []
    for number in range(100):
        try:
            file = files.create(f"{sys.argv[1]}/{number}")
            files.allocate(file, 4096)
            kept.append(files.map(file))
        except OSError as error:
            print(number, error.strerror)
            break
        files.close(file)  # its mapping keeps a descriptor of its own
    print(len(kept), resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "said"), [(40, 400, ["100 (400, 400)"]), (40, 40, ["Too many open files", "(40, 40)"])]
)
def test_soft_limit_is_raised_when_it_is_met(
    soft: int, hard: int, said: list[str], tmp_path: Path, repository: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), str(tmp_path), str(soft), str(hard)],
        cwd=repository,
        capture_output=True,
        text=True,
        check=True,
    )
    for words in said:
        assert words in done.stdout
