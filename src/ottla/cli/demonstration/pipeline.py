"""The pipeline of `ottla demo`: orders joined with their cafés, and counted in windows of 10 s.

Run it yourself: `ottla streams run pipeline.py`. Topics: demo-orders and demo-cafes, both keyed by
café and in JSON, in; demo-served and demo-counts out.
"""

from datetime import timedelta

from ottla.streams import StreamsBuilder, tumbling

builder = StreamsBuilder()
orders = builder.stream("demo-orders")
cafes = builder.table("demo-cafes")

served = orders.join(cafes, lambda order, cafe: {**order, **cafe})
served.to("demo-served")

counts = served.group_by_key().windowed_by(tumbling(timedelta(seconds=10))).count(store="counts")
counts.to_stream().map(
    lambda window, count: (window.key, {"from_ms": window.start_ms, "orders": count}),
    key="str",
    value="json",
).to("demo-counts")

topology = builder.build()
