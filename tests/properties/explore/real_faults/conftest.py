"""Faults fork, which a process with threads must not do, and those of pytest-xdist have some: each gets a fresh one."""

import multiprocessing
from collections.abc import Iterator
from multiprocessing.pool import Pool

import pytest


@pytest.fixture(scope="module")
def fresh_process() -> Iterator[Pool]:
    """Return a process with one thread that carries out functions of test modules."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        yield pool
