"""A fresh process for faults, which fork.

A process with threads must not fork, and those of pytest-xdist have threads.
"""

import multiprocessing
from collections.abc import Iterator
from multiprocessing.pool import Pool

import pytest


@pytest.fixture(scope="module")
def fresh_process() -> Iterator[Pool]:
    """Yield a process with one thread that runs functions of test modules."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        yield pool
