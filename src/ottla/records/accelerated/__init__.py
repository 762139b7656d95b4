"""The loops over records that are worth compiling, and only those.

decoding.py       records to columns and rows
encoding.py       rows and columns to records
cython_absent.py  what both take from Cython when they run uncompiled without Cython

Both are written in Cython's pure-Python mode. Python runs them as they stand; where a C compiler
was at hand there are decoding_compiled and encoding_compiled beside them, made of the same source
(hatch_build.py). `ottla.records.speed` chooses; nobody else imports them.
"""
