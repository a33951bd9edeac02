"""Run `tornpage sim calibrate`: measure, save, and print the result."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tornpage.cli.document import Outcome, refuse
from tornpage.cli.progress import time_progress
from tornpage.properties.judge.rulings import counted
from tornpage.run.writing import refuse_store_directory

if TYPE_CHECKING:
    from tornpage.sim.device.calibration import Calibration

__all__ = ["sim_calibrate_outcome"]

SECONDS_PER_MODE = 60.0
US = 1_000.0
SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


def sim_calibrate_outcome(
    *,
    directory: str,
    seconds: float | None,
    modes: Sequence[str],
    out: str,
    real_time: bool,
    overwrite: bool,
    seed: int,
) -> tuple[Outcome, str]:
    """Measure the disk of a directory and write the calibration."""
    from tornpage.bench.calibration.calibrate import CannotCalibrate, calibrate
    from tornpage.impl.errors import StoreError
    from tornpage.properties.contract import HarnessError
    from tornpage.sim.device.calibration_file import save

    _require_places(directory, out, overwrite=overwrite)
    wanted_s = SECONDS_PER_MODE * len(set(modes)) if seconds is None else seconds
    try:
        with _priority(real_time), time_progress("calibrating", seconds=wanted_s) as progress:
            found = calibrate(
                directory, seconds=wanted_s, modes=tuple(dict.fromkeys(modes)), seed=seed, progress=progress
            )
    except CannotCalibrate as error:
        refuse(str(error))
    except (OSError, StoreError, HarnessError) as error:
        refuse(f"cannot measure below {directory}: {error}")
    try:
        save(found.calibration, out)
    except OSError as error:
        refuse(f"cannot write {out}: {error.strerror or error}; name another --out")
    figures = _figures(found.calibration)
    findings = [{"code": "noisy", "severity": "warning", "sentence": _noisy(found.calibration)}]
    outcome = Outcome(
        "sim calibrate",
        None,
        figures,
        list(figures),
        findings if found.calibration.is_noisy else [],
        seed=seed,
        extra={"snapshot": dict(found.calibration.snapshot), "calibration": out},
        interrupted=found.interrupted,
    )
    return outcome, _text(found.calibration, out)


def _require_places(directory: str, out: str, *, overwrite: bool) -> None:
    """Refuse unusable places before the measurement starts."""
    if not os.path.isdir(directory):
        refuse(f"{directory} is no directory; name one on the disk to be measured")
    if not os.access(directory, os.W_OK | os.X_OK):
        refuse(f"{directory} cannot be written to; name a directory of yours on the disk to be measured")
    if not os.path.basename(out):
        refuse(f"--out {out!r} names no file; name one")
    if os.path.isdir(out):
        refuse(f"--out {out} is a directory; name a file")
    refuse_store_directory(Path(out).parent, option="--out")
    if os.path.exists(out) and not overwrite:
        refuse(f"--out {out} exists; name another file, or give --overwrite")
    parent = os.path.dirname(os.path.abspath(out))
    if not os.access(parent, os.W_OK | os.X_OK):
        refuse(f"cannot write to {parent}; name another --out")


@contextmanager
def _priority(real_time: bool) -> Iterator[None]:
    """Run with real-time priority on request; refuse if the system does not allow it."""
    if not real_time:
        yield
        return
    from tornpage.bench.calibration import driven

    with driven.real_time() as is_first:
        if not is_first:
            refuse("--real-time needs the right to real-time scheduling (root, or a limit of RLIMIT_RTPRIO)")
        yield


def _noisy(calibration: "Calibration") -> str:
    return f"noisy: {calibration.noise}; predictions with it carry that noise"


def _figures(calibration: "Calibration") -> dict[str, float | int]:
    import numpy as np

    from tornpage.sim.device.samples import MODES, STATES

    figures: dict[str, float | int] = {
        "rounds": calibration.rounds,
        "syncs": len(calibration.samples.syncs),
        "probes": len(calibration.samples.probes),
        "is_noisy": int(calibration.is_noisy),
        "floor_ks": max(floor.ks for floor in calibration.floors),
        "cpu_pressure_share": float(calibration.snapshot["cpu_pressure_share"]),
    }
    chosen = calibration.samples.syncs[calibration.samples.syncs["rate_per_s"] == 0]
    for mode in calibration.modes:
        for state in STATES:
            rows = chosen[(chosen["mode"] == MODES.index(mode)) & (chosen["state"] == STATES.index(state))]
            for name, share in SHARES.items():
                took = rows["took_ns"][rows["pages"] == 1]
                figures[f"sync_{mode}_{state}_1_page_{name}_us"] = float(np.quantile(took, share)) / US
    return figures


def _text(calibration: "Calibration", out: str) -> str:
    figures, snapshot = _figures(calibration), calibration.snapshot
    lines = [f"{'sync of 1 page, us':<22}" + "".join(f"{name:>10}" for name in SHARES) + f"{'floor KS':>12}"]
    for floor in calibration.floors:
        mode, _, state = floor.what.partition(", ")
        values = [figures[f"sync_{mode}_{state}_1_page_{name}_us"] for name in SHARES]
        lines.append(f"{floor.what:<22}" + "".join(f"{value:>10,.0f}" for value in values) + f"{floor.ks:>12.2f}")
    device = calibration.device(calibration.modes[0])
    lines += [
        "",
        f"{counted(calibration.rounds, 'round')}, {counted(figures['syncs'], 'sync')} in "
        f"{snapshot['measured_s']:.0f} s on "
        f"{snapshot.get('file_system')}, {_journal(snapshot)}read-ahead {snapshot.get('read_ahead_kib', '?')} KiB, "
        f"scheduler {snapshot.get('scheduler', '?')}",
        f"first touch {device.touch_page_ns:,} ns/page, a group commit's first answer after "
        f"{device.answering_ns / US:.0f} us, each further one {device.answer_ns / US:.1f} us",
        f"waited for a processor {snapshot['cpu_pressure_share']:.0%} of the time",
    ]
    if calibration.is_noisy:
        lines.append(_noisy(calibration))
    lines.append(f"calibration in {out}")
    return "\n".join(lines)


def _journal(snapshot: Any) -> str:
    return {"yes": "with a journal, ", "no": "without a journal, "}.get(snapshot.get("journal", ""), "")
