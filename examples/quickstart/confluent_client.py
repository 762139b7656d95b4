"""Write and read with confluent-kafka. Start a broker first: `ottla serve`.

python examples/quickstart/confluent_client.py [HOST:PORT]
"""

import sys

from confluent_kafka import Consumer, Producer

bootstrap = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"

producer = Producer({"bootstrap.servers": bootstrap})
for number in range(10):
    producer.produce("quickstart", key=f"key-{number % 3}", value=f"hello {number}")
producer.flush()

consumer = Consumer(
    {"bootstrap.servers": bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"}
)
consumer.subscribe(["quickstart"])
seen = 0
while seen < 10:
    message = consumer.poll(10)
    if message is None:
        sys.exit("nothing came for ten seconds: is the broker there?")
    if message.error():
        sys.exit(str(message.error()))
    print(f"{message.offset()}: {message.key().decode()} = {message.value().decode()}")
    seen += 1
consumer.close()
