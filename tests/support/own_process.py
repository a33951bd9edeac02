"""Run the tests of a file in a small process, and report them for a worker.

A worker of pytest-xdist has imported the modules of all tests: 280 MB of private memory. The cost of a fork grows with
that memory, and some files fork thousands of times. A process that has imported one file forks at a fifth of the cost.

`OwnProcesses` is the side of the worker. The functions below it are the side of the small process, which loads this
module as a plugin and writes its reports as lines of JSON.
"""

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

__all__ = ["OwnProcesses", "reports_of"]

_OPTION = "--reports-to"
_QUICK_TESTS_MAX = 30
"""A start costs as much processor time as so many quick tests."""


class OwnProcesses:
    """Run the tests of some files in a process per file.

    A few quick tests of such a file run in the worker.
    """

    def __init__(self, files: Collection[Path]) -> None:
        self._files = frozenset(files)
        self._reports: dict[Path, dict[str, list[pytest.TestReport]]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Report a test of such a file.

        A test without a report runs in this process: the small process ended before it. The test before this one left
        the fixtures that this one shares with it. They are torn down here, unless the next test needs them.
        """
        if item.path not in self._files:
            return None
        if item.path not in self._reports:
            chosen = [each for each in item.session.items if each.path == item.path]
            names = [each.nodeid for each in chosen] if _are_worth_a_process(chosen) else []
            self._reports[item.path] = reports_of(names, item.config) if names else {}
        reports = self._reports[item.path].get(item.nodeid)
        if not reports or reports[-1].when != "teardown":
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        item.session._setupstate.teardown_exact(nextitem)
        return True


def _are_worth_a_process(tests: Sequence[pytest.Item]) -> bool:
    """Return whether one of them is slow, or there are many."""
    return len(tests) > _QUICK_TESTS_MAX or any(each.get_closest_marker("slow") for each in tests)


def reports_of(tests: Sequence[str], config: pytest.Config) -> dict[str, list[pytest.TestReport]]:
    """Run tests in a process of their own; return the reports of each."""
    found: dict[str, list[pytest.TestReport]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="tornpage-test-") as directory:
        chosen, written = Path(directory, "tests"), Path(directory, "reports")
        chosen.write_text("".join(f"{each}\n" for each in tests))
        written.touch()
        command = [sys.executable, "-m", "pytest", "-p", __name__, "-p", "no:cacheprovider", "-qq", "-n0", "-m", ""]
        for name in ("hypothesis_profile", "hypothesis_seed"):
            if (given := config.getoption(name, None)) is not None:
                command.append(f"--{name.replace('_', '-')}={given}")
        command += [f"{_OPTION}={written}", f"@{chosen}"]
        subprocess.run(command, cwd=config.rootpath, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        for line in written.read_text().splitlines():
            report = config.hook.pytest_report_from_serializable(config=config, data=json.loads(line))
            found[report.nodeid].append(report)
    return found


# ---- the side of the small process -----------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the file of the reports."""
    parser.addoption(_OPTION, metavar="FILE", help="append each report to FILE, as a line of JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Write reports if the option is given."""
    if path := config.getoption(_OPTION):
        config.pluginmanager.register(_Writer(config, Path(path)))


class _Writer:
    def __init__(self, config: pytest.Config, path: Path) -> None:
        self._config, self._path = config, path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Append a report."""
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        with self._path.open("a") as file:
            file.write(json.dumps(data) + "\n")
