"""Name and show campaigns on cases of several processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tornpage.cli.document import Outcome
from tornpage.outcomes.processes.cases import ProcessKind, failure_text, save_process_case
from tornpage.properties.judge.rulings import counted

if TYPE_CHECKING:
    from tornpage.properties.campaign.case_runs import CasePlan, CaseTally
    from tornpage.properties.campaign.result import CampaignResult
    from tornpage.properties.lockstep.step_program import StepFailure

__all__ = ["ProcessCampaign"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessCampaign:
    """Describe how campaigns of one verb of `explore` are named and shown.

    `kind` is the kind of their cases. `size` names the option and the setting with the number of processes. The text
    shows how often each of the `effects` happened, and the rate of states or of runs.
    """

    verb: str
    kind: ProcessKind
    size: Literal["nodes", "members"]
    effects: tuple[str, ...]
    rate: Literal["states", "runs"]

    def command(self, plan: CasePlan[Any], *, programs: str = "", settings: str = "") -> str:
        """Return the command that runs a campaign again.

        `programs` are the options that go with --all-of, `settings` those that only this verb has.
        """
        limits = "".join(
            f" --{name} {value:g}" for name in ("states", "seconds") if (value := getattr(plan, name)) is not None
        )
        all_of = f" --all-of {plan.length}{programs}" if plan.length else ""
        planted = f" --bug {plan.settings.bug}" if plan.settings.bug else ""
        return (
            f"tornpage explore {self.verb} --{self.size} {self._processes(plan)}{limits}{all_of} --seed {plan.seed}"
            f" --disk {plan.settings.disk} --workers {plan.workers}{settings}{planted}"
        )

    def outcome(
        self,
        result: CampaignResult[CaseTally, StepFailure[Any]],
        plan: CasePlan[Any],
        *,
        out: str | None,
        command: str,
        statement: str = "",
        counts: Mapping[str, int] | None = None,
    ) -> tuple[Outcome, str]:
        """Return the outcome and the text of a campaign; write its case files to `out` if given.

        `statement` is the bound of a campaign of all programs. `counts` are further figures.
        """
        tally = result.tally
        explored = tally.states if self.rate == "states" else tally.runs
        rate = explored / max(result.seconds, 1e-9)
        timings = ("seconds", f"{self.rate}_per_s")
        figures: dict[str, float | int] = {
            self.size: self._processes(plan),
            "runs": tally.runs,
            "states": tally.states,
            "distinct_runs": len(tally.outcomes),
            "repeated_runs": result.repeated,
            **{f"happened_{name.replace(' ', '_').lower()}": times for name, times in tally.hit.items()},
            **(counts or {}),
            **dict(zip(timings, (result.seconds, rate), strict=True)),
        }
        rows = [{"happened": name, "times": times} for name, times in sorted(tally.hit.items())]
        caption = {"source": self.verb, "seed": plan.seed, "command": command}
        outcome = Outcome(
            "explore",
            result.verdict.value,
            figures,
            timings,
            self._findings(result, out),
            seed=plan.seed,
            extra={"result_hash": result.result_hash, "canary": result.canary},
            interrupted=result.interrupted,
            tables={self.verb: {"rows": rows, "caption": caption}},
        )
        shown_rate = f"{rate:,.0f}" if self.rate == "states" else f"{rate:,.1f}"
        lines = [
            *(failure_text(self.kind, found.failure) for found in result.found),
            f"{counted(tally.runs, 'run')} of {self._processes(plan)} {self.size}, {counted(tally.states, 'state')} in "
            f"{result.seconds:.1f} s: {shown_rate} {self.rate}/s",
            ", ".join(f"{name} {tally.hit[name]:,}" for name in self.effects),
            f"{counted(result.repeated, 'run')} repeated with equal results",
            *([statement] if statement and not result.is_cut else []),
            *result.faults,
            *([f"vacuous: {', '.join(result.silent)} never happened"] if result.silent and not result.found else []),
            *(["vacuous: no planted bug was caught"] if result.without_canary and not result.found else []),
            *([f"caught the planted bug {result.canary}"] if result.canary else []),
            f"result hash: {result.result_hash}",
            f"verdict: {'interrupted' if result.interrupted and not result.found else result.verdict.value}",
        ]
        return outcome, "\n".join(lines)

    def _processes(self, plan: CasePlan[Any]) -> int:
        """Return the number of processes of a run."""
        return int(getattr(plan.settings, self.size))

    def _findings(self, result: CampaignResult[CaseTally, StepFailure[Any]], out: str | None) -> list[dict[str, Any]]:
        """Return what was broken, or why the campaign is vacuous, and the faults of the harness."""
        from tornpage.properties.findings import Finding

        findings: list[dict[str, Any]] = []
        if not result.found:
            findings = [
                Finding("never-happened", "vacuous", f"{name} never happened").document() for name in result.silent
            ]
            if result.without_canary:
                findings.append(Finding("no-canary", "vacuous", "no planted bug was caught").document())
        for found in result.found:
            finding = found.failure.finding().document()
            if out is not None:
                save_process_case(self.kind, found.failure, finding, out)
            findings.append(finding)
        return findings + [Finding("harness", "harness", fault).document() for fault in result.faults]
