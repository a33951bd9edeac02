"""Steps that crash the store: real kills, the machine, the campaign, and the canary that proves them awake."""

import json
import subprocess

from tornpage.document import Outcome
from tornpage.guard import python_command
from tornpage.steps.step import Step

__all__ = ["canary", "check", "explore", "kills"]

CANARY_BUG = "no-erase-after-cut"
KILLS = 100
EXPLORE_STATES = 2_500
CHECK_EXAMPLES = 320


def kills(seed: int) -> Step:
    """Kill real writers. First of all, while the process has no thread."""
    from tornpage.exploring import Request, explore_kills

    outcome, _ = explore_kills(Request(kills=KILLS, seed=seed))
    figures = outcome.figures
    sentence = f"{figures['killed']} writers killed by SIGKILL at {figures['distinct_points']} distinct steps"
    return Step("kills", outcome, sentence)


def check(seed: int) -> Step:
    """Compare store and model."""
    from tornpage.commands.check import check_outcome

    outcome, text = check_outcome(CHECK_EXAMPLES, profile="quick", bug="", seed=seed, out=None)
    return Step("check", outcome, text.splitlines()[0])


def explore(seed: int) -> Step:
    """Explore crash states."""
    from tornpage.exploring import Request, explore_crashes

    outcome, _ = explore_crashes(Request(states=EXPLORE_STATES, seed=seed))
    figures = outcome.figures
    sentence = f"{figures.get('states', 0):,} crash states, {figures.get('distinct_images', 0):,} distinct images"
    return Step("explore", outcome, sentence)


def canary(seed: int) -> Step:
    """Find a planted bug, shrink it, and run it again from its token in another process."""
    from tornpage.exploring import Request, explore_crashes

    found, _ = explore_crashes(Request(seconds=30, bug=CANARY_BUG, seed=seed, failures=1))
    if found.verdict != "broken":
        return Step("canary", Outcome("canary", "vacuous", found.figures), f"{CANARY_BUG} was not found")
    failure = found.findings[0]
    again = subprocess.run(
        python_command("tornpage", "replay", failure["token"], "--json"), capture_output=True, text=True, check=False
    )
    replayed = json.loads(again.stdout) if again.returncode == 1 else {}
    same = [finding["sentence"] for finding in replayed.get("findings", ())] == [failure["sentence"]]
    figures = {"operations": len(failure["program"]), "states_to_find": found.figures["all_states"]}
    sentence = (
        f"{CANARY_BUG} found after {figures['states_to_find']} states, shrunk to {figures['operations']} operations, "
        + ("replayed by token in another process" if same else "but its token does not replay")
    )
    verdict = "holds" if same else "harness"
    return Step("canary", Outcome("canary", verdict, figures, tables=found.tables), sentence)
