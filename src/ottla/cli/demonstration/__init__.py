"""What `ottla demo` shows: a broker, the first records through it, and a pipeline on Spark.

broker_process.py     the broker, in a process of its own
first_records.py      produce and consume, at once
pipeline.py           the pipeline, as people would write it; pipeline_process.py runs it
cafes.py              the events it is about                  tally.py   what has come of them
show.py               events in, results out; dashboard.py shows them
"""
