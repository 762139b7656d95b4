"""Errors are types that say whose fault it is and whether trying again can help.

python examples/clients/errors.py [HOST:PORT]
"""

import sys

import ottla

bootstrap = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"

with ottla.Producer(bootstrap, max_request_size=1000) as producer:
    try:
        producer.send("small", b"x" * 2000)
    except ottla.OttlaError as error:
        print(f"{error.code.name}, the fault of the {ottla.fault_of(error).value}: {error}")
        print("worth a retry" if ottla.is_worth_retrying(error) else "not worth a retry")

try:
    ottla.Producer("127.0.0.1:1", max_block_ms=100)
except ottla.OttlaError as error:
    print(f"{error.code.name}, the fault of the {ottla.fault_of(error).value}: {error}")
