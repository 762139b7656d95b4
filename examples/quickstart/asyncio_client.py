"""Write and read with aiokafka. Start a broker first: `ottla serve`.

python examples/quickstart/asyncio_client.py [HOST:PORT]
"""

import asyncio
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer


async def main(bootstrap: str) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number in range(10):
            await producer.send_and_wait("asyncio-quickstart", f"hello {number}".encode())
    async with AIOKafkaConsumer(
        "asyncio-quickstart",
        bootstrap_servers=bootstrap,
        group_id="asyncio-readers",
        auto_offset_reset="earliest",
    ) as consumer:
        for _ in range(10):
            message = await consumer.getone()
            print(f"{message.offset}: {message.value.decode()}")


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"))
