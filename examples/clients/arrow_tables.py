"""Write a whole Arrow table, and read topics back as tables. Needs pip install 'ottla[arrow]'.

python examples/clients/arrow_tables.py [HOST:PORT]
"""

import sys

import pyarrow
from pyarrow import compute

import ottla

bootstrap = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
cities = ["Oslo", "Bergen", "Tromsø"]
table = pyarrow.table(
    {
        "key": [cities[number % 3] for number in range(30_000)],
        "value": [f"{number % 40 - 10}" for number in range(30_000)],
    }
)

with ottla.Producer(bootstrap, compression_type="lz4") as producer:
    sent = producer.send_arrow("temperatures", table)  # waits for the broker's word
    print(sent.record_count, "records sent to", len(sent.partitions), "partitions")

whole = ottla.read_topic("temperatures", bootstrap_servers=bootstrap, columns=["key", "value"])
readings = pyarrow.table(
    {
        "city": whole["key"].cast("string"),
        "degrees": whole["value"].cast("string").cast("int64"),
    }
)
for row in readings.group_by("city").aggregate([("degrees", "max")]).to_pylist():
    print(row["city"], row["degrees_max"])

count = 0
for batch in ottla.iter_topic("temperatures", bootstrap_servers=bootstrap):  # in bounded memory
    count += compute.sum(compute.equal(batch["key"], b"Oslo")).as_py()
print(count, "readings from Oslo")

with ottla.Consumer(
    "temperatures", bootstrap_servers=bootstrap, group_id="tables", auto_offset_reset="earliest"
) as consumer:
    rows = 0
    while rows < 30_000:
        rows += consumer.poll_arrow(5.0).num_rows
    print(rows, "rows polled")
