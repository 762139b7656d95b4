"""The log on disk: segments, indexes, producer state, recovery, retention and compaction.

Kafka's own files and layout, so that Kafka's dump tool reads them. Nothing here waits: slow
work is handed out as a job that the caller may run in a thread. Knows no network and no cluster.
"""
