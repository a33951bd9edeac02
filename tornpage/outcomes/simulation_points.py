"""Make simulation points from options, broker settings, presets and calibrations."""

import os
from collections.abc import Sequence
from difflib import get_close_matches
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tornpage.cli.document import refuse

if TYPE_CHECKING:
    from tornpage.impl.config.policy import FlushPolicy
    from tornpage.sim.broker_config import BrokerPolicies
    from tornpage.sim.device.device import DeviceTimes
    from tornpage.sim.scenario import Pool, Writeback
    from tornpage.sim.sweep import Point

__all__ = ["DEVICE_MODES", "FLUSH_KINDS", "devices_of", "points_of"]


DEVICE_MODES = ("mmap", "pwrite")
FLUSH_KINDS = ("sync", "async", "woken")
SETTINGS_BYTES_MAX = 1 << 20
NS_PER_S, NS_PER_MS, NS_PER_US = 1e9, 1e6, 1e3


def points_of(
    *,
    devices: Sequence[str],
    messages: int | None,
    seconds: float | None,
    size: int,
    size_max: int | None,
    file_size: int,
    seed: int,
    replica_us: float | None = None,
    broker_config: str | None = None,
    device_mode: str | None = None,
    any_machine: bool = False,
    **asked: Any,
) -> "tuple[list[Point], list[dict[str, Any]]]":
    """Return the requested grid with its notes; refuses impossible values."""
    if seconds is not None and not isfinite(seconds * NS_PER_S):
        refuse(f"--seconds {seconds} has no end")
    if replica_us is not None and not isfinite(replica_us * NS_PER_US):
        refuse(f"--replica-us {replica_us} has no end")
    chosen, said = devices_of(devices, mode=device_mode, any_machine=any_machine)
    from tornpage.sim.distributions import Constant
    from tornpage.sim.scenario import Replica
    from tornpage.sim.sweep import grid
    from tornpage.sim.workload import Sizes

    broker = None if broker_config is None else _read_broker_config(broker_config)
    try:
        workloads = _workloads(Sizes(size, size if size_max is None else size_max), **asked)
        points = grid(
            flushes=_flush_policies(**asked) if broker is None else [broker.flush],
            allocations=_allocations(**asked) if broker is None else [broker.allocation],
            pools=_pools(**asked) if broker is None else [broker.pool],
            replica=None if replica_us is None else Replica(Constant(round(replica_us * NS_PER_US))),
            writeback=_writeback(**asked),
            devices=chosen,
            workloads=workloads,
            file_bytes=[file_size if broker is None else broker.file_bytes],
            messages=100_000 if messages is None and seconds is None else messages,
            duration_ns=None if seconds is None else max(round(seconds * NS_PER_S), 1),
            seeds=[seed],
        )
    except ValueError as error:
        refuse(str(error))
    notes = () if broker is None else broker.notes
    return points, [*said, *({"code": "no-effect", "severity": "note", "sentence": note} for note in notes)]


def _read_broker_config(path: str) -> "BrokerPolicies":
    from tornpage.sim.broker_config import BadBrokerConfig, parse_properties, policies_of

    try:
        with Path(path).open("rb") as file:
            stored = file.read(SETTINGS_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        refuse(f"cannot read --broker-config {path}: {getattr(error, 'strerror', None) or error}")
    if len(stored) > SETTINGS_BYTES_MAX:
        refuse(f"--broker-config {path} is too long for a file of settings")
    try:
        return policies_of(parse_properties(stored.decode("utf-8", "replace")))
    except BadBrokerConfig as error:
        refuse(f"--broker-config {path}: {error}")


def _flush_policies(
    *,
    flushes: Sequence[str],
    intervals_ms: Sequence[int],
    least_pages: Sequence[int],
    thorough_ms: int | None,
    **_: Any,
) -> "list[FlushPolicy]":
    from tornpage.impl.config.policy import FlushDiskType, FlushPolicy

    if set(flushes) == {"sync"} and (intervals_ms or least_pages or thorough_ms is not None):
        refuse("--interval-ms, --least-pages and --thorough-ms go with --flush async: group commit has no timer")
    default = FlushPolicy(FlushDiskType.ASYNC_FLUSH)
    thorough = default.flush_commit_log_thorough_interval if thorough_ms is None else thorough_ms
    policies = []
    for flush in flushes:
        if flush == "sync":
            policies.append(FlushPolicy(FlushDiskType.SYNC_FLUSH))
            continue
        policies += [
            FlushPolicy(FlushDiskType.ASYNC_FLUSH, interval, pages, thorough, flush == "async")
            for interval in intervals_ms or [default.flush_interval_commit_log]
            for pages in least_pages or [default.flush_commit_log_least_pages]
        ]
    return policies


def _allocations(*, allocations: Sequence[str], warm: bool, **_: Any) -> list[Any]:
    from tornpage.impl.config.policy import AllocationPolicy, WarmUp

    warm_up = WarmUp.TOUCH_AND_FORCE if warm else WarmUp.NONE
    return [AllocationPolicy({"on-demand": 0, "one-ahead": 1}[name], warm_up) for name in allocations]


def _pools(
    *,
    pool: int | None,
    commit_interval_ms: int | None,
    commit_least_pages: int | None,
    commit_thorough_ms: int | None,
    fast_fail: bool,
    **_: Any,
) -> "list[Pool | None]":
    from tornpage.impl.config.policy import CommitPolicy
    from tornpage.sim.scenario import Pool

    given = {
        "commit_interval_commit_log": commit_interval_ms,
        "commit_commit_log_least_pages": commit_least_pages,
        "commit_commit_log_thorough_interval": commit_thorough_ms,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    if pool is None:
        if chosen or fast_fail:
            refuse("--commit-interval-ms, --commit-least-pages, --commit-thorough-ms and --fast-fail go with --pool")
        return [None]
    return [Pool(pool, CommitPolicy(**chosen), fast_fail)]


def _writeback(
    *, writeback: bool, wake_ms: int | None, expire_ms: int | None, background_mib: int | None, **_: Any
) -> "Writeback | None":
    from tornpage.sim.scenario import Writeback

    background_bytes = None if background_mib is None else background_mib << 20
    given = {"wake_ms": wake_ms, "expire_ms": expire_ms, "background_bytes": background_bytes}
    chosen = {name: value for name, value in given.items() if value is not None}
    if chosen and not writeback:
        refuse("--wake-ms, --expire-ms and --background-mib go with --writeback")
    return Writeback(**chosen) if writeback else None


def _workloads(
    sizes: Any,
    *,
    rates: Sequence[float],
    producers: Sequence[int],
    think_us: float | None,
    burst_ms: float | None,
    rest_ms: float | None,
    rest_rate: float | None,
    **_: Any,
) -> list[Any]:
    from tornpage.sim.distributions import Constant, Exponential
    from tornpage.sim.workload import ClosedLoop, OnOffBursts, OpenPoisson

    if think_us is not None and not producers:
        refuse("--think-us goes with --producers: an open load does not wait for answers")
    if (burst_ms is None) != (rest_ms is None) or (rest_rate is not None and burst_ms is None):
        refuse("bursts need --burst-ms and --rest-ms; --rest-rate is the rate between them")
    think = Exponential(think_us * 1000) if think_us else Constant(0)
    loads: list[Any] = []
    for rate in rates:
        if burst_ms is None or rest_ms is None:
            loads.append(OpenPoisson(rate, sizes))
        else:
            spans = [round(span * NS_PER_MS) if isfinite(span * NS_PER_MS) else 0 for span in (burst_ms, rest_ms)]
            loads.append(OnOffBursts(rate, spans[0], spans[1], sizes, rest_rate or 0.0))
    return [*loads, *(ClosedLoop(count, sizes, think) for count in producers)]


# ---- devices ---------------------------------------------------------------------------------------------------------


def devices_of(
    names: Sequence[str], *, mode: str | None, any_machine: bool
) -> "tuple[list[DeviceTimes], list[dict[str, Any]]]":
    """Return the devices with notes on noise and other machines; refuses unknown ones."""
    from tornpage.sim.device.device import PRESETS

    devices, findings = [], []
    for name in names:
        if name in PRESETS:
            devices.append(PRESETS[name])
        elif os.path.exists(name):
            device, said = _calibrated(name, mode or "mmap", any_machine=any_machine)
            devices.append(device)
            findings += said
        else:
            near = get_close_matches(name, PRESETS, n=2)
            meant = f" (did you mean {' or '.join(near)}?)" if near else ""
            presets = ", ".join(PRESETS)
            refuse(f"no device {name!r}{meant}; there are {presets}, and files of `tornpage sim calibrate`")
    if all(name in PRESETS for name in names) and (mode is not None or any_machine):
        refuse("--device-mode and --any-machine go with a calibration as --device")
    return devices, findings


def _calibrated(path: str, mode: str, *, any_machine: bool) -> "tuple[DeviceTimes, list[dict[str, Any]]]":
    from tornpage.bench.calibration.snapshot import machine_snapshot
    from tornpage.sim.device.calibration_file import BadCalibration, load
    from tornpage.sim.device.sync_table import TooFewSamples

    try:
        calibration = load(path)
    except OSError as error:
        refuse(f"cannot read --device {path}: {error.strerror or error}; name a file of `tornpage sim calibrate`")
    except BadCalibration as error:
        refuse(f"--device {path}: {error}; `tornpage sim calibrate` makes one")
    try:
        device = calibration.device(mode)
    except TooFewSamples as error:
        refuse(f"--device {path}: {error}; it knows {', '.join(calibration.modes)} as --device-mode")
    findings = []
    strange = calibration.strangeness(machine_snapshot(os.getcwd()))
    if strange and not any_machine:
        refuse(f"--device {path} was measured on another machine ({strange}); calibrate here, or give --any-machine")
    if strange:
        sentence = f"{path} was measured on another machine: {strange}"
        findings.append({"code": "other-machine", "severity": "warning", "sentence": sentence})
    if calibration.is_noisy:
        sentence = f"{path} is noisy: {calibration.noise}; this prediction carries that noise"
        findings.append({"code": "noisy-calibration", "severity": "warning", "sentence": sentence})
    return device, findings
