"""Kafka's wire protocol: messages as classes, codecs compiled from them, frames. No I/O."""
