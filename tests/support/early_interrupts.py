"""Measure what an interrupt in the first milliseconds of a command ends in.

    python tests/support/early_interrupts.py [COMMAND...] [--tries N] [--within MS]

Each try starts the command and sends SIGINT once the command has used an even share of the processor time. So other
load does not move the moments. The outcomes:

* `line`: exit code 130, and one line.
* `silent`: the signal ended the process before Python handled signals. The shell prints nothing more.
* `traceback`: Python was starting: reading `site`, `.pth` files, or the script of the command.
* `ended`: the command had ended.
"""

import argparse
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

__all__ = ["outcome_of", "outcomes"]

INTERRUPTED = 130


def outcome_of(command: Sequence[str], after_s: float) -> str:
    """Return the outcome of an interrupt after so much processor time of a command.

    Source: `/proc/PID/schedstat`, the time on a processor in ns.
    """
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        used = Path(f"/proc/{process.pid}/schedstat")
        while int(used.read_text().split()[0]) < after_s * 1e9 and process.poll() is None:
            pass  # a sleep would take longer than a millisecond
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate()
    if process.returncode == -signal.SIGINT and not complaint:
        return "silent"
    if process.returncode == INTERRUPTED and complaint.count("\n") == 1:
        return "line"
    return "ended" if process.returncode in (0, 1, 2, 3) and "Traceback" not in complaint else "traceback"


def outcomes(command: Sequence[str], *, tries: int, within_s: float) -> Counter[str]:
    """Count the outcomes of interrupts at even shares of the processor time."""
    return Counter(outcome_of(command, within_s * number / tries) for number in range(tries))


def main() -> None:
    """Print the outcomes for a command, by default the script of this environment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs="*")
    parser.add_argument("--tries", type=int, default=50)
    parser.add_argument("--within", type=float, default=50.0, metavar="MS")
    asked = parser.parse_args()
    command = asked.command or [str(Path(sys.executable).with_name("tornpage")), "explore"]
    found = outcomes(command, tries=asked.tries, within_s=asked.within / 1000)
    print(", ".join(f"{name} {count}" for name, count in found.most_common()))


if __name__ == "__main__":
    main()
