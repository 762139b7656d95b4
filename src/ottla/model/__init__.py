"""Ids, counts and the clock's interface: the words every other package speaks."""
