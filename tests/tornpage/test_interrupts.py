"""Test interrupts of a command: handled once at any time, without later output.

Each test needs a new process: signals, exit codes, and the end of Python.
"""

import os
import subprocess
import sys

import pytest

from tests.support.early_interrupts import outcomes
from tornpage.properties.campaign.result import CampaignResult
from tornpage.properties.explore.foreign.campaign import TargetPlan, TargetResult, TargetTally
from tornpage.properties.program.case import Settings
from tornpage.render.explorations import target_outcome

LOSES_IT_TWICE = """
import signal, weakref
from tornpage.cli.interrupts import hear_all_interrupts

class Thing:
    pass

def lose_it(_):
    signal.raise_signal(signal.SIGINT)

class Worse:
    def __del__(self):
        while True:  # the interrupt that comes again falls in here
            for _ in range(1000):
                pass

hear_all_interrupts()
thing = Thing()
watched = weakref.ref(thing, lose_it)
try:
    del thing
    worse = Worse()
    del worse
    while True:
        pass
except KeyboardInterrupt:
    print("heard")
"""


def test_an_interrupt_that_was_ignored_comes_again_until_it_is_heard() -> None:
    done = subprocess.run([sys.executable, "-P", "-c", LOSES_IT_TWICE], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("heard\n", "", 0)


def test_what_else_is_ignored_is_told_as_before() -> None:
    fails = """
from tornpage.cli.interrupts import hear_all_interrupts

class Fails:
    def __del__(self):
        raise ValueError("told")

hear_all_interrupts()
Fails()
"""
    done = subprocess.run([sys.executable, "-P", "-c", fails], capture_output=True, text=True, timeout=60)
    assert "ValueError: told" in done.stderr


def end_of(program: str) -> tuple[int, str, str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_an_interrupt_of_code_that_was_just_being_made_is_forgotten_once_it_is_handled(number: str) -> None:
    """Python died of SIGINT at the end of a command that had saved its results.

    A dataclass was being imported.
    """
    program = f"""
import signal
from tornpage.cli.interrupts import hear_all_interrupts
hear_all_interrupts()
try:
    exec("signal.raise_signal(signal.{number})\\nwhile True: pass")
except KeyboardInterrupt:
    print("heard")
"""
    assert end_of(program) == (0, "heard\n", "")


def test_who_presses_twice_interrupts_once() -> None:
    """The second one interrupted the removal of temporary files."""
    program = """
import signal
from tornpage.cli.interrupts import hear_all_interrupts
hear_all_interrupts()
try:
    signal.raise_signal(signal.SIGINT)
    while True: pass
except KeyboardInterrupt:
    signal.raise_signal(signal.SIGINT)
    for _ in range(1000): pass
    print("cleaned up")
"""
    assert end_of(program) == (0, "cleaned up\n", "")


def test_a_forked_process_dies_of_sigterm() -> None:
    program = """
import os, signal
from tornpage.cli.interrupts import hear_all_interrupts
hear_all_interrupts()
pid = os.fork()
if pid == 0:
    signal.raise_signal(signal.SIGTERM)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    assert end_of(program) == (0, "-15\n", "")


def test_an_interrupt_before_there_is_a_command_is_one_line() -> None:
    """It ended in a traceback of some import."""
    program = """
import signal, sys

class Importing:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "click":
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Importing)
from tornpage.guard import main
sys.exit(main())
"""
    assert end_of(program) == (130, "", "interrupted\n")


def test_a_command_that_has_said_its_last_is_not_interrupted() -> None:
    program = """
import atexit, signal, sys
atexit.register(lambda: signal.raise_signal(signal.SIGINT))
sys.argv = ["tornpage", "--version"]
from tornpage.guard import main
sys.exit(main())
"""
    code, said, complaint = end_of(program)
    assert (code, complaint) == (0, "")
    assert said.startswith("tornpage")


@pytest.mark.parametrize("end", ["raise KeyboardInterrupt", "sys.exit(130)"])
def test_who_was_interrupted_ends_without_finalizers(end: str) -> None:
    """An interrupt in Numba's compiler ended in a crash of its finalizers, after all output."""
    program = f"""
import atexit, os, sys
import tornpage.cli.main

class Half:
    def __del__(self):
        os.abort()

def command(**_):
    print("what there was")
    {end}

half = Half()
half.itself = half
atexit.register(lambda: print("removed"))
tornpage.cli.main.cli.main = command
tornpage.cli.main.main()
"""
    code, said, complaint = end_of(program)
    assert (code, said) == (130, "what there was\nremoved\n")
    assert complaint in ("", "interrupted\n")


@pytest.mark.deep
def test_most_interrupts_in_the_first_50_ms_are_one_line() -> None:
    """The rest falls into the start of Python, before its script runs."""
    command = [sys.executable, "-P", "-m", "tornpage", "explore"]
    found = outcomes(command, tries=50, within_s=0.05)
    assert found["line"] >= 30, found


def test_an_interrupted_campaign_of_a_store_prints_no_other_verdict() -> None:
    result: TargetResult = CampaignResult(TargetTally(), interrupted=True, is_cut=True)
    outcome, text = target_outcome(result, TargetPlan(Settings()), command="", out=None, verb="campaign")
    assert outcome.exit_code == 130
    assert text.endswith("verdict: interrupted")
    assert "vacuous" not in text
