"""An error with a file name that is no UTF-8 is reported.

Symptom: a process of `tornpage explore kills` ended with an error about such a file and reported nothing. The report
was that it "raises nothing, but the process ended".
Cause: Python keeps such a byte as a lone surrogate, which cannot be encoded, so the report itself failed.
Fix: it is written with escapes (properties/explore/kills/progress.py, `Progress.fail`).
Found by: reading.
"""

from tornpage.properties.explore.kills.progress import Progress


def test_the_error_is_told() -> None:
    progress = Progress()
    progress.fail(OSError("queue \udcff is gone"))
    assert progress.error == "OSError: queue \\udcff is gone"


def test_a_long_one_is_cut() -> None:
    progress = Progress()
    progress.fail(OSError("é" * 2_000))
    assert progress.error.startswith("OSError: éé")
