"""What all tests share: settings, the order of the long files, where temporary files lie."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tornpage.properties.explore.machines.equal_draws import use_seeds_only

# A loaded machine must not turn a slow example into a failure. Runs of the same sources take the same examples; others,
# and many more, are for those who hunt: `--hypothesis-profile=hunt`, maybe with `--hypothesis-seed` (ADR 47).
settings.register_profile("tests", deadline=None, print_blob=True, derandomize=True)
settings.register_profile("hunt", deadline=None, print_blob=True, derandomize=False, max_examples=2_000)
settings.load_profile("tests")
use_seeds_only()

TESTS = Path(__file__).resolve().parent
FIRST = (
    "properties/test_planted.py",
    "properties/test_sigkill.py",
    "tornpage/test_cli.py",
    "pipeline/test_jobs_spark.py",
    "properties/test_machines.py",
    "properties/test_campaign.py",
    "reports/test_pages.py",
    "impl/test_golden_answers.py",
    "pipeline/test_commands.py",
    "properties/test_machine.py",
    "impl/test_stress.py",
    "sim/test_laws.py",
    "reports/test_browser.py",
    "impl/test_dispatch_kernel.py",
    "impl/test_multi_path_power_loss.py",
)
"""The files that take longest begin, each in one process, so that none is left alone with one of them at the end."""
MEMORY = "/dev/shm"
ROOM_BYTES = 4 << 30


def pytest_configure(config: pytest.Config) -> None:
    """Let `tmp_path` lie in memory where that has room, and what tests start hear interrupts.

    Thousands of small stores sync all that they write. Tests whose subject is the disk take `disk_path`; `--basetemp`
    or PYTEST_DEBUG_TEMPROOT names another place.
    """
    if has_room(MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)
    # A shell has what it starts in the background ignore interrupts, and so would every process of the tests.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def has_room(directory: str) -> bool:
    """Return whether files may be written there, a few GiB of them."""
    try:
        return os.access(directory, os.W_OK | os.X_OK) and shutil.disk_usage(directory).free >= ROOM_BYTES
    except OSError:
        return False


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long files first."""
    place = {TESTS / name: number for number, name in enumerate(FIRST)}
    items.sort(key=lambda item: place.get(item.path, len(FIRST)))


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the root of the checkout."""
    return TESTS.parent


@pytest.fixture
def disk_path() -> Iterator[Path]:
    """Return a directory where temporary files usually lie, on a disk; `tmp_path` may lie in memory."""
    with tempfile.TemporaryDirectory(prefix="tornpage-test-") as directory:
        yield Path(directory)
