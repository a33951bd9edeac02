"""One Spark session for the tests of the pipeline."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tornpage.pipeline.spark.session import SparkUnavailable, require_java, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Return a session on two cores; skip where there is no Java or no Spark."""
    try:
        require_java()
        session = spark_session("tests", master="local[2]", shuffle_partitions=1, short=True)
    except SparkUnavailable as error:
        pytest.skip(str(error))
    yield session
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sockets to the JVM are closed by the garbage collector
        session.stop()
