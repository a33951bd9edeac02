"""Define bugs of consumers."""

from tornpage.properties.planted.record import PlantedBug

__all__ = ["BUGS"]

BUGS: tuple[PlantedBug, ...] = ()
