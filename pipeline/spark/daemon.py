"""The process from which Spark's workers are forked: it imports once what tasks need.

Spark starts it as a module (`spark.python.daemon.module`). After `gc.freeze` the full collection that a worker makes
after each task has nothing to walk. Without it that is most of the cost of a small task.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys

__all__ = ["warm"]

_TASK_MODULES = (
    "numpy",
    "pandas",
    "pyarrow",
    "pyspark.worker",
    "tornpage.pipeline.campaign.campaign",
    "tornpage.pipeline.readers.log_columns",
    "tornpage.pipeline.readers.reading",
    "tornpage.pipeline.rows.log_reading",
    "tornpage.pipeline.audit.work",
    "tornpage.sim.sweep",
)


def warm() -> None:
    """Import what tasks need; the task that needs a missing module reports it."""
    for name in _TASK_MODULES:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    with contextlib.suppress(ImportError):
        from tornpage.pipeline.spark.agreement import versions

        versions()  # of the code that is loaded now: workers report these versions, even if the files change later
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if sys.argv[1:2] == ["pyspark.worker"]:  # other processes only plan, and start without these
        warm()
    from pyspark.daemon import manager

    manager()
