"""Runs topologies: records in, records out, state in stores. No I/O, no clock, no threads."""
