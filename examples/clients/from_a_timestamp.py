"""Read one partition from a point in time on, without a group.

python examples/clients/from_a_timestamp.py [HOST:PORT]
"""

import sys
import time

import ottla

bootstrap = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
now_ms = int(time.time() * 1000)

with ottla.Producer(bootstrap) as producer:
    for minute in range(10):
        producer.send("events", b"%d" % minute, timestamp_ms=now_ms - (10 - minute) * 60_000)

place = ottla.TopicPartition("events", 0)
with ottla.Consumer(bootstrap_servers=bootstrap) as consumer:
    consumer.assign([place])
    found = consumer.offsets_for_times({place: now_ms - 4 * 60_000})[place]
    assert found is not None
    consumer.seek(place, found.offset)
    for record in consumer.poll(5.0):
        print(record.value.decode())
