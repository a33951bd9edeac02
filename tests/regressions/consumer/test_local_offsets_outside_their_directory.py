"""The progress of a broadcasting consumer stays below its directory.

Symptom: with the client id ".." the file `offsets.json` was written beside the directory, and a client id with a zero
byte raised ValueError of the operating system's interface.
Cause: client id and group became names of folders without a check.
Fix: names that cannot be folders are refused (impl/consumer/offset_store.py).
Found by: reading the code.
"""

from pathlib import Path
from typing import Any

import pytest

from tornpage.impl.consumer.push_consumer import PushConsumer
from tornpage.impl.consumer.settings import ConsumerSettings, MessageModel
from tornpage.impl.errors import BadConfig
from tornpage.impl.io.os_files import OsFiles


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ({"client_id": ".."}, r"client_id='\.\.' is invalid"),
        ({"client_id": "."}, r"client_id='\.' is invalid"),
        ({"client_id": "a\0b"}, "client_id=.* is invalid"),
        ({"consumer_group": ".."}, r"consumer_group='\.\.' is invalid"),
    ],
)
def test_name_that_is_no_folder_is_refused(tmp_path: Path, names: dict[str, Any], sentence: str) -> None:
    given = {"consumer_group": "g", "client_id": "c", **names}
    settings = ConsumerSettings(message_model=MessageModel.BROADCASTING, **given)
    with pytest.raises(BadConfig, match=sentence):
        PushConsumer(settings, {}, files=OsFiles(), directory=str(tmp_path / "offsets"))
    assert list(tmp_path.iterdir()) == []
