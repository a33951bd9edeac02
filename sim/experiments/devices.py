"""Name the source of each preset, in a sentence for the foot of a figure.

The numbers are in `sim.device.device`.
"""

from collections.abc import Mapping
from types import MappingProxyType

from tornpage.sim.device.device import PRESETS

__all__ = ["device_source"]

_OTHERS = "; all else as measured on the machine of vm-ext4"
_SOURCES: Mapping[str, str] = MappingProxyType(
    {
        "vm-ext4": "measured on one virtual machine (2 shared cores, ext4 without a journal, kernel 6.18), quiet runs",
        "plp-nvme": "published measurements of drives with power-loss protection (12 to 58 µs a sync)" + _OTHERS,
        "consumer-nvme": "published measurements of a consumer drive (0.9 ms a sync, no spread known)" + _OTHERS,
        "ebs-gp3": "published fio runs of 2,300 bytes a sync (700 µs, deviation 240 µs)" + _OTHERS,
        "ebs-gp2": "published fio runs of 2,300 bytes a sync (1,422 µs, deviation 728 µs)" + _OTHERS,
        "hdd": "one turn of a disk at 7,200 a minute; general knowledge" + _OTHERS,
    }
)


def device_source(name: str) -> str:
    """Return the source of a preset; those for formulas are made up."""
    return _SOURCES.get(name, "made up, for formulas that are exact" if name in PRESETS else "given by its user")
