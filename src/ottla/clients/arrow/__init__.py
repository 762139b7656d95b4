"""Whole Arrow tables to and from topics, without a Python object for each record.

columns.py           the columns of a table that was read
read_plan.py         what a reader is told: columns, settings, how much at once
range_fetcher.py     [start, end) of one partition as it comes from its leader, one answer ahead
reading.py           ranges of some partitions, one after the other
bounds.py            earliest, latest, offsets and times to ranges
topic_reader.py      a topic as a table or a stream of record batches, for asyncio
partition_reader.py  one range as record batches for a plain thread: what a Spark task uses
polling.py           what a consumer has fetched as one table
outgoing.py          tables as they are given, to pieces of bounded size that can be encoded
placing.py           which rows of a piece go to which partition
sending.py           the batches of a table through a producer
table_sent.py        what became of them
"""
