"""Settings, the order of the long files, processes and temporary directories of all tests."""

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from tests.support.own_process import OwnProcesses
from tornpage.properties.explore.machines.equal_draws import use_seeds_only

# A loaded machine must not turn a slow example into a failure. Runs of the same sources take the same examples.
# `--hypothesis-profile=hunt`, maybe with `--hypothesis-seed`, takes others and many more (ADR 47).
settings.register_profile("tests", deadline=None, print_blob=True, derandomize=True)
settings.register_profile("hunt", deadline=None, print_blob=True, derandomize=False, max_examples=2_000)
settings.load_profile("tests")
use_seeds_only()

TESTS = Path(__file__).resolve().parent
FIRST = (
    "properties/planted/test_planted.py",
    "properties/explore/kills/test_sigkill.py",
    "tornpage/test_cli.py",
    "pipeline/test_jobs_spark.py",
    "properties/explore/machines/test_machines.py",
    "properties/campaign/test_campaign.py",
    "reports/test_pages.py",
    "impl/golden/test_golden_answers.py",
    "pipeline/test_commands.py",
    "properties/explore/machines/test_machine.py",
    "impl/store/test_stress.py",
    "sim/test_laws.py",
    "reports/test_browser.py",
    "impl/kernels/test_dispatch_kernel.py",
    "impl/log/test_multi_path_power_loss.py",
)
"""The longest files begin, each in one process, so that no process is left with a long file at the end."""
FORKING = (
    "properties/explore/foreign/test_targets.py",
    "properties/explore/kills/test_sigkill.py",
    "properties/foreign/test_assert_store_holds.py",
    "properties/foreign/test_directory_operations.py",
    "properties/foreign/test_first_open.py",
    "properties/foreign/test_open_many.py",
    "properties/foreign/test_promises.py",
    "properties/foreign/test_reading_ahead.py",
    "properties/foreign/test_shape_pages.py",
    "properties/foreign/test_shaped_stores.py",
    "properties/foreign/test_zygote.py",
    "tornpage/test_target_commands.py",
)
"""Files whose tests fork most. Workers run each of them in a small process."""
TOGETHER = {
    "pipeline/campaign/test_peer_campaign.py": "pipeline/test_jobs_spark.py",
    "pipeline/test_watching.py": "pipeline/test_jobs_spark.py",
    "properties/mutation/test_loading.py": "properties/mutation/test_mutants.py",
    "properties/mutation/test_reach.py": "properties/mutation/test_mutants.py",
    "reports/kinds/test_layout_of_pages.py": "reports/test_browser.py",
    "reports/test_simulation_in_a_browser.py": "reports/test_browser.py",
}
"""Files that run in the process of another file, and share what it made.

It is the Spark session, the list of mutants, or the browser.
"""
STARTERS = {
    "browser": "reports",
    "client": "peers",
    "release": ".",
    "spark": "pipeline",
    "wheels": ".",
}
"""Fixtures that start Java, Chromium or a build, by folder. The tests that take them are marked `slow`."""
BYTECODE = TESTS.parent / "build" / "bytecode"
"""Where compiled modules lie if the environment forbids them beside their sources."""
MEMORY = "/dev/shm"
ROOM_BYTES = 4 << 30


def keep_bytecode() -> None:
    """Keep compiled modules of this process and its children in `build/`.

    This happens only if PYTHONDONTWRITEBYTECODE is set. Without them each worker and each command of a test compiles
    all its sources at every start.
    """
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        prefix = os.environ.setdefault("PYTHONPYCACHEPREFIX", str(BYTECODE))
        sys.dont_write_bytecode, sys.pycache_prefix = False, prefix


keep_bytecode()


def pytest_configure(config: pytest.Config) -> None:
    """Put `tmp_path` into memory where that has room; let child processes receive interrupts.

    Thousands of small stores sync all their writes. Tests whose subject is the disk take `disk_path`. `--basetemp` or
    PYTEST_DEBUG_TEMPROOT names another place.
    """
    if has_room(MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)
    # A shell starts background commands with interrupts ignored, and all processes of the tests would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(OwnProcesses([TESTS / name for name in FORKING]))


def pytest_xdist_auto_num_workers() -> int | None:
    """Return a worker more than processors.

    A worker waits while its child processes start and end. With a worker for each processor the processors are idle
    for a fifth of the time. PYTEST_XDIST_AUTO_NUM_WORKERS is a number to take instead.
    """
    return None if os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS") else len(os.sched_getaffinity(0)) + 1


class _Files(LoadFileScheduling):  # type: ignore[misc]  # pytest-xdist has no types
    """Distribute files to the workers; files of TOGETHER count as one."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.split("::", 1)[0]
        partner = TOGETHER.get(path.removeprefix("tests/"))
        return f"tests/{partner}" if partner else path


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    """Return the scheduler of files, unless another one is chosen with `--dist`."""
    return _Files(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark tests that start a foreign runtime."""
    for name in STARTERS.keys() & set(getattr(item, "fixturenames", ())):
        if item.path.is_relative_to(TESTS / STARTERS[name]):
            item.add_marker(pytest.mark.slow)


def has_room(directory: str) -> bool:
    """Return whether a directory is writable and has a few GiB of room."""
    try:
        return os.access(directory, os.W_OK | os.X_OK) and shutil.disk_usage(directory).free >= ROOM_BYTES
    except OSError:
        return False


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long files first."""
    place = {TESTS / name: number for number, name in enumerate(FIRST)}
    items.sort(key=lambda item: place.get(item.path, len(FIRST)))


def pytest_collection_finish() -> None:
    """Leave modules and collected tests out of garbage collections.

    A collection would visit 700,000 more objects, and in a forked process it would copy their memory.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the root of the checkout."""
    return TESTS.parent


@pytest.fixture
def disk_path() -> Iterator[Path]:
    """Return a temporary directory on a disk, in the usual place.

    `tmp_path` may lie in memory.
    """
    with tempfile.TemporaryDirectory(prefix="tornpage-test-") as directory:
        yield Path(directory)
