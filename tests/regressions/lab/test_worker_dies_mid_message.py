"""A worker that is killed while it sends its result counts as dead.

Symptom: a worker was killed on a machine short of memory while it sent the result of its shard. The whole campaign
ended with a traceback, "got end of file during message". A run of kills reported a directory named None that cannot be
used.
Cause: the result of a shard is larger than a pipe, so a worker can die in the middle of it. Half a message is an
OSError of its own kind, not the end of the pipe.
Fix: such a worker has died, like any other (campaign/workers.py, `Work.hear`).
Found by: reading.
"""

import os
import struct
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from tornpage.properties.campaign.engine import explore
from tornpage.properties.campaign.workers import Died, Work, _Worker
from tornpage.properties.contract import HarnessError
from tornpage.properties.explore.crashes.campaign import death_sentence
from tornpage.properties.explore.crashes.shards import Shard, ShardRun
from tornpage.properties.explore.kills.cycle import KillReport
from tornpage.properties.explore.kills.program import CYCLES_PER_PROGRAM
from tornpage.properties.explore.kills.run import _Explorer
from tornpage.properties.program.case import Settings


def say_half_a_word(pipe: Connection) -> None:
    os.write(pipe.fileno(), struct.pack("!i", 1_000) + b"half")


def test_a_shard_is_lost_and_the_campaign_goes_on() -> None:
    ours, theirs = Pipe()
    say_half_a_word(theirs)
    theirs.close()
    process: Any = SimpleNamespace(join=lambda: None, exitcode=-9)
    shard = Shard(3, 0, 10, Settings())
    job: Any = None
    work: Work[Shard, ShardRun] = Work(job, iter(()), workers=2, is_stopped=True)
    work.pool = [_Worker(process, ours, 0, shard, "0:3000000")]
    work.hear(work.pool[0])
    ours.close()
    assert work.pool == []
    [(_, died)] = work.ended()
    assert isinstance(died, Died)
    assert death_sentence(died).startswith("the worker that ran shard 3 was killed by SIGKILL")


def test_a_run_of_kills_says_which_program_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(parent: Connection, job: object, foreign: tuple[Connection, ...]) -> NoReturn:
        parent.send("ready")
        number, _, _ = parent.recv()
        say_half_a_word(parent) if number == 1 else parent.send(KillReport(0, "step"))
        os._exit(0)

    monkeypatch.setattr("tornpage.properties.campaign.workers._work", work)
    job: Any = SimpleNamespace(seed=0, mode="step")
    explorer = _Explorer(job, [(0,), (CYCLES_PER_PROGRAM,)])
    with pytest.raises(HarnessError, match="a worker ended before its program 1"):
        explore(explorer, workers=2)
