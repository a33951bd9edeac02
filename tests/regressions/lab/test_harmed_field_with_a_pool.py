"""Symptom: `harm_field` found a put that no consumer reached.

The store had a transient pool, and a record had a damaged queue offset.

Cause: the lab dispatched after the put and did not commit the buffer. A record in a buffer is not readable.
Fix: `harm_field` and the damage trials commit before they dispatch.
"""

from tornpage.model.operations import HarmField, Put
from tornpage.properties.campaign.replay import replay
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.program.case import Case, Settings


def test_a_put_into_a_buffer_is_reached() -> None:
    settings = Settings(file_bytes=1024, trailer=False, pool_buffers=2)
    delayed = Put(body_bytes=368, properties="DELAY\x0199")
    with choose_tracker("auto") as tracker:
        assert replay(Case(settings, (delayed, Put(), Put(), HarmField(value=1))), tracker=tracker) is None
