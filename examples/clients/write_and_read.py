"""Write some records and read them back in a group.

python examples/clients/write_and_read.py [HOST:PORT]
"""

import sys

import ottla

bootstrap = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"

with ottla.Producer(bootstrap, key_serializer=str, value_serializer=str) as producer:
    for number in range(10):
        producer.send("orders", f"order {number}", key=f"customer {number % 3}")

with ottla.Consumer(
    "orders",
    bootstrap_servers=bootstrap,
    group_id="kitchen",
    auto_offset_reset="earliest",
    value_deserializer=str,
) as consumer:
    for count, record in enumerate(consumer, start=1):
        print(f"{record.partition}/{record.offset}: {record.value}")
        if count == 10:
            break
