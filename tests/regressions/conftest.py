"""A regression holds in the store, and breaks a promise with the mistake planted."""

from collections.abc import Iterator, Sequence

import pytest

from tests.support.regressions import Attempt
from tornpage.impl.parts import Parts
from tornpage.model.operations import Operation
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Settings


@pytest.fixture
def attempt() -> Iterator[Attempt]:
    with choose_tracker("auto") as tracker:

        def run(
            operations: Sequence[Operation], settings: Settings, components: Parts | None = None, /
        ) -> GuaranteeBroken | None:
            try:
                trial = lockstep_of(settings, tracker=tracker, parts=components)
                for operation in operations:
                    trial.run(operation)
            except GuaranteeBroken as broken:
                return broken
            return None

        yield run
