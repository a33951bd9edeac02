"""Run `tornpage sim choose`: calibrate if asked, simulate all policies, rank them."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from tornpage.cli.document import Outcome, refuse
from tornpage.cli.progress import counted_progress
from tornpage.outcomes.calibrating import sim_calibrate_outcome
from tornpage.outcomes.choosing.checking import check_outcome
from tornpage.outcomes.choosing.sureness import Validated, read_validation, sentences
from tornpage.outcomes.choosing.texts import choice_table, choice_text, policy_row
from tornpage.outcomes.experiments import TABLE_PREFIX
from tornpage.outcomes.simulation_points import devices_of
from tornpage.run.directory import prepare, write_run

if TYPE_CHECKING:
    from tornpage.sim.choosing.assessment import Assessed
    from tornpage.sim.choosing.choice import Budget, Choice
    from tornpage.sim.device.device import DeviceTimes
    from tornpage.sim.experiments.policies import StorePolicy
    from tornpage.sim.pair import Link

__all__ = ["RECORD_BESIDES_BODY", "Load", "choose_outcome"]

RECORD_BESIDES_BODY = 122
"""Bytes of a record besides its body: the frame, a topic of 11 letters, and the properties of a checksum."""
SECONDS_WANTED = 20
MESSAGES_LEAST, MESSAGES_MOST = 20_000, 400_000
FINALISTS = 5
BYTES_PER_S = 1.25e8
"""The bandwidth of a link that is given by its latency: 1 Gbit/s."""
SEEDS = 4
"""Further seeds for the finalists."""


@dataclass(frozen=True, slots=True)
class Load:
    """An open load of records of one size, and what is simulated of it."""

    rate_per_s: float
    body_bytes: int
    file_bytes: int
    messages: int | None

    @property
    def record_bytes(self) -> int:
        """The bytes of a record in the log."""
        return self.body_bytes + RECORD_BESIDES_BODY

    @property
    def simulated(self) -> int:
        """The number of messages of one run."""
        if self.messages is not None:
            return self.messages
        return round(min(max(self.rate_per_s * SECONDS_WANTED, MESSAGES_LEAST), MESSAGES_MOST))


def choose_outcome(
    *,
    device: str | None,
    here: str | None,
    seconds: float | None,
    keep: str | None,
    real_time: bool,
    device_mode: str | None,
    any_machine: bool,
    load: Load,
    loss_ms: float,
    put_p99_us: float,
    crash: str,
    share: float,
    replica: str | None,
    validation: str | None,
    check_directory: str | None,
    check_seconds: float,
    again: str,
    out: str | None,
    seed: int,
) -> tuple[Outcome, str]:
    """Choose a policy; return outcome and text.

    `device` is a preset or a calibration, or the disk of the directory `here` is measured for about `seconds` and its
    calibration kept in `keep`. `replica` is the name of a link, or its latency. With `check_directory` the chosen
    policy runs there on the real store. `again` is the command without seed.
    """
    from tornpage.sim.choosing.choice import Budget, choose

    try:
        budget = Budget(loss_ms, put_p99_us)
    except ValueError as error:
        refuse(str(error))
    link = None if replica is None else _link(replica)
    known = None if validation is None else read_validation(validation)
    _try_load(load)
    directory = None if out is None else prepare(out)
    found, findings, measured = _device(
        device,
        here,
        seconds=seconds,
        keep=keep,
        real_time=real_time,
        mode=device_mode,
        any_machine=any_machine,
        seed=seed,
    )
    assessed: list[Assessed] = []
    interrupted = False
    try:
        _assess_all(assessed, found, load, link, crash=crash, share=share, seed=seed, budget=budget)
    except KeyboardInterrupt:
        interrupted = True
    if not assessed:
        empty = Outcome("sim choose", None, {"policies_done": 0}, seed=seed, interrupted=True)
        return empty, "no policy was simulated"
    choice = choose(assessed, budget)
    checked: dict[str, Any] = {}
    if check_directory is not None and choice.best.policy.replica is not None:
        sentence = "a policy with a second copy is not checked; `tornpage sim link` measures a pair on loopback"
        findings = [*findings, {"code": "check-left-out", "severity": "note", "sentence": sentence}]
    elif check_directory is not None and not interrupted:
        try:
            checked = check_outcome(
                check_directory,
                choice.best.policy,
                budget,
                rate_per_s=load.rate_per_s,
                record_bytes=load.record_bytes,
                seconds=check_seconds,
                crash=crash,
                share=share,
                seed=seed,
            )
        except KeyboardInterrupt:
            interrupted = True
    how_sure = sentences(choice, found, measured, known, is_preset=measured is None)
    outcome = _outcome(choice, load, found, checked, how_sure, known, findings, crash, share, again, seed, interrupted)
    if directory is not None:
        write_run(directory, outcome)
    return outcome, choice_text(outcome, None if outcome.unwritten else out)


def _link(named: str) -> "Link":
    """Return a link by its name, or by its latency in one direction; refuses others."""
    from tornpage.cli.options import Span
    from tornpage.sim.distributions import Constant
    from tornpage.sim.pair import LINKS, Link

    if named in LINKS:
        return LINKS[named]
    try:
        latency_ns = round(Span().convert(named, None, None))
    except click.BadParameter:
        names = ", ".join(repr(name) for name in LINKS)
        refuse(f"--replica {named!r} is no link; there are {names}, or give the time of one direction, as in 300us")
    return Link(f"a link of {named}", Constant(latency_ns), BYTES_PER_S)


def _try_load(load: Load) -> None:
    """Refuse a load that no broker can have."""
    from tornpage.sim.choosing.candidates import candidates
    from tornpage.sim.device.device import PRESETS

    try:
        _scenario(candidates()[0], PRESETS["vm-ext4"], load)
    except ValueError as error:
        refuse(str(error))


def _scenario(policy: "StorePolicy", device: "DeviceTimes", load: Load) -> Any:
    from tornpage.sim.workload import OpenPoisson, Sizes

    return policy.scenario(
        device,
        OpenPoisson(load.rate_per_s, Sizes.of(load.record_bytes)),
        messages=load.simulated,
        file_bytes=load.file_bytes,
    )


def _device(
    device: str | None,
    here: str | None,
    *,
    seconds: float | None,
    keep: str | None,
    real_time: bool,
    mode: str | None,
    any_machine: bool,
    seed: int,
) -> "tuple[DeviceTimes, list[dict[str, Any]], dict[str, float | int] | None]":
    """Return the device, findings, and the figures of its calibration; None for a preset.

    Measures the disk of `here` if it is given.
    """
    from tornpage.sim.device.calibration_file import load
    from tornpage.sim.device.device import PRESETS

    with ExitStack() as stack:
        if here is not None:
            made = keep or os.path.join(stack.enter_context(tempfile.TemporaryDirectory()), "disk.calibration")
            calibrated, _ = sim_calibrate_outcome(
                directory=here,
                seconds=seconds,
                modes=[mode or "mmap"],
                out=made,
                real_time=real_time,
                overwrite=False,
                seed=seed,
            )
            if calibrated.interrupted:
                raise KeyboardInterrupt
            device = made
        assert device is not None
        [found], findings = devices_of([device], mode=mode if device not in PRESETS else None, any_machine=any_machine)
        if device in PRESETS:
            return found, findings, None
        calibration = load(device)
        floors = {f"noise_{name}": max(abs(getattr(floor, name)) for floor in calibration.floors)
                  for name in ("p50", "p90", "p99", "ks")}  # fmt: skip
        if here is not None:
            findings = [{**finding, "sentence": finding["sentence"].replace(device, f"the calibration of {here}")}
                        for finding in findings]  # fmt: skip
        syncs = calibration.samples.syncs["took_ns"]
        longest = {"syncs": len(syncs), "longest_sync_ms": float(syncs.max()) / 1e6}
        return found, findings, {**floors, **longest}


def _assess_all(
    assessed: "list[Assessed]",
    device: "DeviceTimes",
    load: Load,
    link: "Link | None",
    *,
    crash: str,
    share: float,
    seed: int,
    budget: "Budget",
) -> None:
    """Add every policy to `assessed`; the best ones with further seeds."""
    from tornpage.sim.choosing.assessment import assess, merged
    from tornpage.sim.choosing.candidates import candidates, with_replica
    from tornpage.sim.choosing.choice import choose
    from tornpage.sim.sweep import WORTH_COMPILING, Point, simulate

    policies = (*candidates(), *(() if link is None else with_replica(link, device)))
    runs = len(policies) + FINALISTS * SEEDS
    is_compiled = runs * load.simulated >= WORTH_COMPILING
    done = 0

    def one(policy: "StorePolicy", of_seed: int) -> "Assessed":
        nonlocal done
        show(done * load.simulated, policy.name)
        trace = simulate(Point(0, _scenario(policy, device, load), of_seed, is_compiled=is_compiled))
        done += 1
        return assess(policy, trace, crash=crash, share=share, seed=of_seed)

    with counted_progress("simulating", total=runs * load.simulated, unit="messages") as show:
        for policy in policies:
            assessed.append(one(policy, seed))
        best = choose(assessed, budget).ranked[:FINALISTS]
        for first in best:
            more = [one(first.policy, seed + 1 + number) for number in range(SEEDS)]
            assessed[assessed.index(first)] = merged([first, *more])


def _outcome(
    choice: "Choice",
    load: Load,
    device: "DeviceTimes",
    checked: dict[str, Any],
    how_sure: Sequence[str],
    known: Mapping[str, Validated] | None,
    findings: list[dict[str, Any]],
    crash: str,
    share: float,
    again: str,
    seed: int,
    interrupted: bool,
) -> Outcome:
    from tornpage.sim.broker_config import settings_of
    from tornpage.sim.choosing.choice import frontier

    best, budget = choice.best, choice.budget
    policy = best.policy
    waits = policy.replica is not None
    settings = settings_of(policy.flush, policy.allocation, policy.pool, file_bytes=load.file_bytes, waits=waits)
    if policy.replica is not None and policy.replica.acknowledge == "durable":
        sentence = (
            "no setting of a broker makes its slave acknowledge what is durable; this project's store does, and a "
            "slave of RocketMQ acknowledges what it has received"
        )
        findings = [*findings, {"code": "no-setting", "severity": "warning", "sentence": sentence}]
    rows = [policy_row(one, budget, known) for one in choice.ranked]
    front = [one.policy.name for one in frontier(choice.ranked)]
    if not choice.met:
        sentence = f"no policy meets the budget; the nearest is {policy.name}, see `nearest`"
        findings = [*findings, {"code": "none-meets", "severity": "warning", "sentence": sentence}]
    if checked and not checked["meets"]:
        sentence = f"the real store with {policy.name} does not meet the budget: {checked['sentence']}"
        findings = [*findings, {"code": "check-missed", "severity": "warning", "sentence": sentence}]
    figures: dict[str, float | int] = {
        "policies": len(rows),
        "policies_met": choice.met,
        "best_put_p99_us": best.put_p99_us,
        "best_loss_ms": best.loss_ms,
        "best_loss_messages": best.loss_messages,
        "best_loss_ms_max": best.loss_ms_max,
        "best_loss_messages_max": best.loss_messages_max,
        "seeds": best.seeds,
    }
    measured = {f"check_{name}": value for name, value in checked.items() if isinstance(value, float | int)}
    extra: dict[str, Any] = {
        "budget": {"loss_ms": budget.loss_ms, "put_p99_us": budget.put_p99_us, "crash": crash, "crash_share": share},
        "load": {"rate_per_s": load.rate_per_s, "body_bytes": load.body_bytes, "record_bytes": load.record_bytes},
        "device": device.name,
        "chosen" if choice.met else "nearest": policy.name,
        "broker_conf": settings,
        "how_sure": list(how_sure),
        "frontier": front,
        "rows": rows,
    }
    if checked:
        extra["check"] = checked
    outcome = Outcome(
        "sim choose",
        None if choice.met else "unknown",
        figures | measured,
        list(measured),
        findings,
        seed=seed,
        extra=extra,
        interrupted=interrupted,
    )
    table = choice_table(outcome, command=f"{again} --seed {seed}", is_whole=not interrupted)
    outcome.tables = {f"{TABLE_PREFIX}choose": table}
    return outcome
