"""Calibrations on disk: a compressed archive of NumPy arrays with a header.

`header` is JSON: format, version, snapshot. `syncs` and `probes` are the rows as measured. Fitted values are not
stored.
"""

import io
import json
import os
from collections.abc import Mapping
from zipfile import ZipFile

import numpy as np

from tornpage.sim.device.calibration import Calibration
from tornpage.sim.device.samples import MODES, PROBE_DTYPE, PROBES, STATES, SYNC_DTYPE, Rows, Samples
from tornpage.sim.device.sync_table import TooFewSamples

__all__ = ["BadCalibration", "load", "save"]

FORMAT = "tornpage calibration"
VERSION = 1
LIMITS = {
    "syncs": {"mode": len(MODES), "state": len(STATES)},
    "probes": {"probe": len(PROBES), "state": len(STATES)},
}
"""Fields that index a list, and the length of the list."""
NUMBER_MAX = 1 << 50
"""Thirteen days in ns, or a PiB.

No measurement takes so long, and no sum of such times exceeds 64 bits.
"""


class BadCalibration(ValueError):
    """The file is no calibration that this version can use; the message has the reason."""


def save(calibration: Calibration, path: str | os.PathLike[str]) -> None:
    """Write the calibration, whole or not at all. Raises OSError."""
    header = {"format": FORMAT, "version": VERSION, "snapshot": dict(calibration.snapshot)}
    unfinished = f"{os.fspath(path)}.{os.getpid()}.tmp"
    try:
        with open(unfinished, "xb") as file:
            np.savez_compressed(
                file,
                header=np.frombuffer(json.dumps(header, sort_keys=True).encode(), np.uint8),
                syncs=calibration.samples.syncs,
                probes=calibration.samples.probes,
            )
        os.replace(unfinished, path)
    except BaseException:
        if os.path.exists(unfinished):
            os.unlink(unfinished)
        raise


def load(path: str | os.PathLike[str]) -> Calibration:
    """Read a calibration.

    Raises OSError, and BadCalibration for a file that `save` of this version cannot have written.
    """
    with open(path, "rb") as file:
        stored = io.BytesIO(file.read())
    try:
        # NumPy stops reading before the end of a member, where its checksum would be compared.
        if ZipFile(stored).testzip() is not None:
            raise BadCalibration("it is damaged: a checksum is wrong")
        stored.seek(0)
        with np.load(stored, allow_pickle=False) as archive:
            snapshot = _snapshot(archive["header"])
            samples = Samples(_rows(archive, "syncs", SYNC_DTYPE), _rows(archive, "probes", PROBE_DTYPE))
        return Calibration.from_samples(samples, snapshot)
    except TooFewSamples as error:
        raise BadCalibration(f"too little was measured: {error}") from error
    except BadCalibration:
        raise
    # The bytes are in memory, so any error of unpacking is caused by them, including OSError of bz2 and negative seeks.
    except Exception as error:
        raise BadCalibration("it is no calibration, or it is damaged") from error


def _snapshot(header: "np.ndarray[tuple[int], np.dtype[np.uint8]]") -> Mapping[str, str | int | float]:
    said = json.loads(header.tobytes())
    if not isinstance(said, dict) or said.get("format") != FORMAT:
        raise BadCalibration("it is no calibration, or it is damaged")
    if said.get("version") != VERSION:
        raise BadCalibration(f"it has version {said.get('version')}, this tornpage reads {VERSION}; calibrate again")
    snapshot = said.get("snapshot")
    if not isinstance(snapshot, dict) or not all(isinstance(value, str | int | float) for value in snapshot.values()):
        raise BadCalibration("its snapshot of the machine is damaged")
    return snapshot


def _rows(archive: Mapping[str, Rows], name: str, dtype: "np.dtype[np.void]") -> Rows:
    rows = archive[name]
    if rows.dtype != dtype or rows.ndim != 1:
        raise BadCalibration(f"its {name} have other columns than this version's")
    for field in dtype.names or ():
        if len(rows) and (rows[field].min() < 0 or rows[field].max() >= LIMITS[name].get(field, NUMBER_MAX)):
            raise BadCalibration(f"its {name} have an impossible {field}")
    return rows
