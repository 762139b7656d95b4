"""The same with asyncio, and a delivery that is awaited.

python examples/clients/asynchronous.py [HOST:PORT]
"""

import asyncio
import sys

import ottla.aio


async def main(bootstrap: str) -> None:
    async with ottla.aio.Producer(bootstrap, linger_ms=20) as producer:
        deliveries = [await producer.send("async-orders", b"%d" % n) for n in range(1000)]
        last = await deliveries[-1]
        print(f"the last record is at {last.partition}/{last.offset}")
    async with ottla.aio.Consumer(
        "async-orders", bootstrap_servers=bootstrap, group_id="g", auto_offset_reset="earliest"
    ) as consumer:
        count = 0
        while count < 1000:
            count += len(await consumer.poll(5.0))
        print(f"{count} records read")


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"))
