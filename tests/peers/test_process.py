"""Test the process of a peer: time limit, crash and restart, pool.

A script stands in for Java.
"""

import os
import queue
import sys
from pathlib import Path

import pytest

from tornpage.peers.errors import PeerCrashed, PeerFailed, PeerTimeout, PeerUnavailable
from tornpage.peers.rocketmq.installing import Release
from tornpage.peers.rocketmq.process import Limits, Pool, Process

SCRIPT = f"""#!{sys.executable}
import json, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    if asked["do"] == "echo":
        answer = {{"said": asked["text"], "arguments": sys.argv[1:]}}
    elif asked["do"] == "fail":
        answer = {{"error": "java.lang.Oh: no"}}
    elif asked["do"] == "hang":
        time.sleep(600)
    elif asked["do"] == "die":
        print("OutOfMemoryError", file=sys.stderr)
        sys.exit(3)
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> Release:
    java = tmp_path / "java"
    java.write_text(SCRIPT)
    java.chmod(0o755)
    return Release("4.9.3", tmp_path, tmp_path, str(java))


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_requests_are_answered_by_one_process_with_its_limits(stand_in: Release) -> None:
    with Process(stand_in, Limits(heap_mib=99)) as process:
        assert process.starts == 0
        assert process.ask("echo", text="ü\n")["said"] == "ü\n"
        said = process.ask("echo", text="x" * 300_000)
        assert (len(said["said"]), process.starts) == (300_000, 1)
        assert "-Xmx99m" in said["arguments"]
        pid = process.pid
    assert pid is not None
    assert not is_alive(pid)


def test_an_error_of_the_store_leaves_the_process(stand_in: Release) -> None:
    with Process(stand_in) as process:
        with pytest.raises(PeerFailed, match=r"java\.lang\.Oh: no"):
            process.ask("fail")
        assert process.ask("echo", text="")["said"] == ""
        assert process.starts == 1


def test_a_late_answer_ends_the_process_and_the_next_request_starts_another(stand_in: Release) -> None:
    with Process(stand_in, Limits(answer_s=20)) as process:
        process.ask("echo", text="")
        pid = process.pid
        process._limits = Limits(answer_s=0.05)
        with pytest.raises(PeerTimeout, match=r"no answer to 'hang' within 0\.05 s"):
            process.ask("hang")
        assert pid is not None
        assert not is_alive(pid)
        process._limits = Limits(answer_s=20)
        assert process.ask("echo", text="b")["said"] == "b"
        assert process.starts == 2


def test_a_crash_says_the_last_line_of_the_process(stand_in: Release) -> None:
    with Process(stand_in) as process:
        with pytest.raises(PeerCrashed, match="ended during 'die' with 3: OutOfMemoryError"):
            process.ask("die")
        assert process.ask("echo", text="c")["said"] == "c"


def test_a_java_that_always_ends_is_given_up(stand_in: Release) -> None:
    with Process(stand_in) as process:
        for _ in range(3):
            with pytest.raises(PeerCrashed):
                process.ask("die")
        with pytest.raises(PeerUnavailable, match="ended 3 times before its first answer"):
            process.ask("echo", text="")


def test_a_java_that_does_not_start_is_one_line(tmp_path: Path) -> None:
    with Process(Release("4.9.3", tmp_path, tmp_path, str(tmp_path / "none"))) as process:
        with pytest.raises(PeerUnavailable, match="cannot start"):
            process.ask("echo", text="")
        assert process.starts == 0


def test_a_pool_lends_each_process_once(stand_in: Release) -> None:
    with Pool(stand_in, size=2) as pool:
        with pool.borrowed() as first, pool.borrowed() as second:
            assert first is not second
            with pytest.raises(queue.Empty), pool.borrowed(timeout_s=0.01):
                pass
        with pool.borrowed() as again:
            again.ask("echo", text="")
        assert pool.starts == 1
