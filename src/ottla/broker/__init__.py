"""The broker: partitions, handlers and the wiring between the wire and the log."""
