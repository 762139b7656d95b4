"""Counts by window and key from one topic into another, exactly once; run it again and it goes on.

ottla serve &
python examples/spark/windowed_counts.py 127.0.0.1:9092 /tmp/counts-checkpoint
"""

import sys
import tempfile

from pyspark.sql.functions import window

import ottla
import ottla.spark

BOOTSTRAP = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
CHECKPOINT = sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp()

with ottla.Producer(BOOTSTRAP) as producer:
    for second in range(120):
        page = b"/home" if second % 3 else b"/shop"
        producer.send(
            "spark-clicks", b"click", key=page, timestamp_ms=1_700_000_040_000 + second * 1000
        )

spark = ottla.spark.session()
clicks = (
    spark.readStream.format("ottla")
    .option("kafka.bootstrap.servers", BOOTSTRAP)
    .option("subscribe", "spark-clicks")
    .option("startingOffsets", "earliest")
    .option("group.id", "click-counter")  # so that `ottla groups` shows how far it has come
    .load()
)
counts = (
    clicks.selectExpr("CAST(key AS STRING) AS page", "timestamp")
    .groupBy("page", window("timestamp", "1 minute"))
    .count()
    .selectExpr("page AS key", "to_json(struct(page, window.start, count)) AS value")
)
query = (
    counts.writeStream.outputMode("update")
    .foreachBatch(ottla.spark.to_topic("spark-counts", bootstrap_servers=BOOTSTRAP))
    .option("checkpointLocation", CHECKPOINT)
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()

written = (
    spark.read.format("ottla")
    .option("kafka.bootstrap.servers", BOOTSTRAP)
    .option("subscribe", "spark-counts")
    .load()
)
for row in written.selectExpr("CAST(value AS STRING) AS value").orderBy("value").collect():
    print(row.value)
spark.stop()
