"""Query a store with SQL, in a session of Spark that is not tornpage's own.

    python examples/store_sql.py STORE
    spark-submit --master 'local[2]' examples/store_sql.py STORE

Both run the same program. docs/tables.md lists the tables and their columns.
"""

import sys

from pyspark.sql import SparkSession

from tornpage.pipeline.readers.sources import register

VIEWS = {
    "log": "USING `rocketmq-commitlog` OPTIONS (path '{store}', columns 'offset,size,topic,queue_id,store_time')",
    "units": "USING `rocketmq-consumequeue` OPTIONS (path '{store}')",
    "problems": "USING `rocketmq-commitlog` OPTIONS (path '{store}', table 'problems')",
}
QUERIES = {
    "messages and bytes by topic": """
        SELECT topic, count(*) AS messages, sum(size) AS bytes, min(store_time) AS first, max(store_time) AS last
        FROM log GROUP BY topic ORDER BY topic
    """,
    "messages by minute": """
        SELECT window(store_time, '1 minute').start AS minute, count(*) AS messages
        FROM log GROUP BY minute ORDER BY minute
    """,
    "records without a unit in their queue": """
        SELECT topic, count(*) AS missing FROM log LEFT ANTI JOIN units USING (topic, queue_id, offset)
        GROUP BY topic ORDER BY topic
    """,
    "damaged or unreadable parts of the log": "SELECT file, code, position, size FROM problems ORDER BY file, position",
    "columns of the log": "DESCRIBE log",
}


def main(store: str) -> None:
    """Print the result of each query."""
    quoted = store.replace("\\", "\\\\").replace("'", "\\'")
    with SparkSession.builder.appName("store_sql").getOrCreate() as spark:
        register(spark)
        for name, view in VIEWS.items():
            spark.sql(f"CREATE TEMPORARY VIEW {name} {view.format(store=quoted)}")
        for title, query in QUERIES.items():
            print(f"-- {title}")
            spark.sql(query).show(50, truncate=False)


if __name__ == "__main__":
    main(sys.argv[1])
