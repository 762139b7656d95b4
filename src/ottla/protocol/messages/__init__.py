"""The messages, one file an API; coordinator and control records stand in `*_records.py`.

Nothing is imported here: a process loads the messages it speaks.
"""
