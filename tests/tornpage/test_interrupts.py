"""An interrupt that falls into a place where exceptions are ignored."""

import subprocess
import sys

LOSES_IT_TWICE = """
import signal, weakref
from tornpage.interrupts import hear_all_interrupts

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
from tornpage.interrupts import hear_all_interrupts

class Fails:
    def __del__(self):
        raise ValueError("told")

hear_all_interrupts()
Fails()
"""
    done = subprocess.run([sys.executable, "-P", "-c", fails], capture_output=True, text=True, timeout=60)
    assert "ValueError: told" in done.stderr
