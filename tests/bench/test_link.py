"""Test the prediction of a pair: made measurements, and one short real measurement."""

import multiprocessing
import os
import signal
import sys
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from click.testing import CliRunner

from tornpage.bench.link import pairs
from tornpage.bench.link.pairs import DrivenPair, PairCase, drive_pair
from tornpage.bench.link.probes import bytes_per_s, echo, free_address, latencies_ns
from tornpage.bench.link.validation import CASES, LinkRound, validate_link
from tornpage.cli.main import cli
from tornpage.sim.distributions import Constant
from tornpage.sim.pair import Link, Pair, replicate

MS = 1_000_000
LATENCY_NS, APPEND_NS = 50_000, {"received": 100_000, "durable": 900_000}


def made_slice(case: PairCase, seed: int, factor: float = 1.0) -> DrivenPair:
    """Return a slice of a simulated pair whose answers take `factor` times as long."""
    rng = np.random.default_rng(seed)
    stored = np.cumsum(rng.exponential(1e9 / case.rate_per_s, 400)).astype(np.int64) + 17 * MS
    size = np.full(400, 1000, np.int64)
    append = APPEND_NS[case.acknowledge]
    pair = Pair(Link("made", Constant(LATENCY_NS), 1e9), turn=Constant(MS // 2), append=Constant(append))
    known = replicate(pair, seed, stored - stored[0], size).known_ns + stored[0]
    answered = stored + ((known - stored) * factor).astype(np.int64)
    return DrivenPair(case, stored, answered, size, np.full(50, append, np.int64))


def made_rounds(count: int, factor: float = 1.0) -> list[LinkRound]:
    return [
        LinkRound(
            np.full(100, LATENCY_NS, np.int64),
            1e9,
            tuple(
                made_slice(case, 100 * number + at, 1.0 if case.calibrates else factor) for at, case in enumerate(CASES)
            ),
        )
        for number in range(count)
    ]


def test_a_pair_as_simulated_is_predicted() -> None:
    found = validate_link(made_rounds(6), seed=1)
    assert found.verdict == "holds"
    assert all(abs(each.error.p50) < 0.1 for each in found.scores)
    assert {each.name for each in found.scores} == {case.name for case in CASES if not case.calibrates}


def test_a_slower_pair_is_not_predicted() -> None:
    found = validate_link(made_rounds(6, 1.5), seed=1)
    assert found.verdict == "broken"
    assert all(each.error.p50 < -0.2 for each in found.scores)


def test_a_measurement_that_differs_between_rounds_is_unknown() -> None:
    fast, slow = made_rounds(4), made_rounds(4, 3.0)
    mixed = [(fast if number % 2 else slow)[number] for number in range(4)]
    assert validate_link(mixed, seed=1).verdict == "unknown"


def test_one_round_is_too_few() -> None:
    with pytest.raises(ValueError, match="a floor needs 2"):
        validate_link(made_rounds(1), seed=1)


def test_a_link_is_measured() -> None:
    with echo() as connection:
        found = latencies_ns(connection, 50)
        assert 0 < int(np.median(found)) < 100 * MS
        assert bytes_per_s(connection) > 1e6


@pytest.mark.deep
def test_a_real_pair_is_measured(tmp_path: Path) -> None:
    found = drive_pair(tmp_path, PairCase("test", 100), address=free_address(), seconds=0.5, seed=1)
    assert (found.answered_ns > found.stored_ns).all()
    assert len(found.appends_ns)


@pytest.mark.deep
def test_the_command_measures_and_predicts(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["sim", "link", str(tmp_path), "--seconds", "4", "--json"])
    assert result.exit_code in (0, 1, 3), result.output
    assert '"latency_p50_us"' in result.stdout


@pytest.mark.slow
def test_interrupted_slave_ends_with_its_parent(tmp_path: Path) -> None:
    """Symptom: Ctrl-C in `sim link` printed the traceback of the slave.

    After a SIGINT for the parent alone, the parent waited 20 s for the slave. Cause: the slave took the signal, and
    waited for a message that an interrupted parent does not send. Fix: it ignores the signal, and ends when the pipe is
    closed. Found by: Ctrl-C.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    errors = tmp_path / "errors"
    started = context.Event()
    arguments = (str(errors), started, str(tmp_path / "slave"), theirs)
    process = context.Process(target=_slave_with_errors, args=arguments)
    process.start()
    theirs.close()
    assert started.wait(60)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGINT)
    ours.close()
    process.join(30)
    assert (process.exitcode, errors.read_text()) == (0, "")


def _slave_with_errors(errors: str, started: Any, directory: str, pipe: Any) -> None:
    sys.stderr = open(errors, "w")  # noqa: SIM115
    open_node = pairs._open

    def opened(*arguments: Any) -> Any:
        node = open_node(*arguments)
        started.set()
        return node

    pairs._open = cast(Any, opened)
    pairs._slave(directory, pairs.PairCase("one", 10.0), "127.0.0.1:1", pipe)
