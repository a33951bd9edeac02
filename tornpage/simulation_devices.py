"""Devices of the simulator, by the name of a preset or from the file of a calibration."""

import os
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from tornpage.document import refuse

if TYPE_CHECKING:
    from sim.device import DeviceTimes

__all__ = ["devices_of"]


def devices_of(
    names: Sequence[str], *, mode: str | None, any_machine: bool
) -> "tuple[list[DeviceTimes], list[dict[str, Any]]]":
    """Return the devices, and what is to be said about them: noise, another machine. Refuses what there is not."""
    from sim.device import PRESETS

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
    from bench.snapshot import machine_snapshot
    from sim.calibration_file import BadCalibration, load
    from sim.sync_table import TooFewSamples

    try:
        calibration = load(path)
    except OSError as error:
        refuse(f"cannot read --device {path}: {error.strerror or error}")
    except BadCalibration as error:
        refuse(f"--device {path}: {error}; `tornpage sim calibrate` makes one")
    try:
        device = calibration.device(mode)
    except TooFewSamples as error:
        refuse(f"--device {path}: {error}; it knows {', '.join(calibration.modes)} as --device-mode")
    findings = []
    strange = calibration.strangeness(machine_snapshot(os.getcwd()))
    if strange and not any_machine:
        refuse(f"--device {path} was measured on another machine ({strange}); calibrate here, or say --any-machine")
    if strange:
        sentence = f"{path} was measured on another machine: {strange}"
        findings.append({"code": "other-machine", "severity": "warning", "sentence": sentence})
    if calibration.is_noisy:
        sentence = f"{path} is noisy: {calibration.noise}; this prediction carries that noise"
        findings.append({"code": "noisy-calibration", "severity": "warning", "sentence": sentence})
    return device, findings
