"""Read, transform and write exactly once: records and offsets in one transaction.

python examples/clients/transaction.py [HOST:PORT]
"""

import sys

import ottla

bootstrap = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"

with ottla.Producer(bootstrap) as producer:
    for number in range(10):
        producer.send("numbers", b"%d" % number)

done = 0
with (
    ottla.Consumer(
        "numbers",
        bootstrap_servers=bootstrap,
        group_id="doubler",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    ) as consumer,
    ottla.Producer(bootstrap, transactional_id="doubler-1") as producer,
):
    while done < 10:
        records = consumer.poll(5.0)
        with producer.transaction():  # commits at the end, aborts on an exception
            for record in records:
                producer.send("doubles", b"%d" % (int(record.value) * 2))
            ends = {ottla.TopicPartition(r.topic, r.partition): r.offset + 1 for r in records}
            producer.send_offsets(ends, consumer.place)
        done += len(records)
print(f"{done} numbers doubled")
