"""A frame into a topic and back, with Spark and no jar.

ottla serve &
python examples/spark/batch.py 127.0.0.1:9092
"""

import sys

import ottla.spark

BOOTSTRAP = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"

spark = ottla.spark.session()

orders = spark.createDataFrame(
    [("anna", "coffee", 2), ("ben", "tea", 1), ("anna", "cake", 1)], ["who", "what", "count"]
)
(
    orders.selectExpr("who AS key", "to_json(struct(*)) AS value")
    .write.format("ottla")
    .option("kafka.bootstrap.servers", BOOTSTRAP)
    .option("topic", "spark-orders")
    .mode("append")
    .save()
)

records = (
    spark.read.format("ottla")
    .option("kafka.bootstrap.servers", BOOTSTRAP)
    .option("subscribe", "spark-orders")
    .load()
)
per_person = (
    records.selectExpr("from_json(CAST(value AS STRING), 'who STRING, count INT') AS placed")
    .groupBy("placed.who")
    .sum("placed.count")
    .toDF("who", "total")
    .orderBy("who")
)
for row in per_person.collect():
    print(row.who, "has ordered", row.total)
spark.stop()
