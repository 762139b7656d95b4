"""Topologies on Spark: one query a sub-topology, one task of the engine a partition number.

queries.py         a topology as streaming queries       data_source.py   what they read and write
packets.py         records as they travel inside of Spark: many in one row
processor.py, worker.py    what a Spark task does with them    global_tables.py   in its process
pages.py, state_cells.py   a task's stores in Spark's state: ordered keys in pages
topics.py          the application's own topics     topic_follower.py   a topic, read and followed
consumption.py     which offsets a micro-batch used up      purge.py   what nobody needs any more
checkpoint_mark.py, checkpoint_folder.py    whose checkpoint it is, and whether it is worth anything
resumption.py, restoring.py    without one: where to go on, and state from changelogs
kept_stores.py, run_settings.py    what is remembered, and how an application is run
progress.py, failure_sentence.py      how a query does, and what went wrong, without Spark's words
"""
