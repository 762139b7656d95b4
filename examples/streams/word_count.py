"""Counts words: `ottla streams run examples/streams/word_count.py`, or this file by itself.

Topics: lines (text) in, word-counts (the word, and how often it came) out.
"""

from ottla.streams import Streams, StreamsBuilder

builder = StreamsBuilder()
words = builder.stream("lines", value="str").flat_map_values(
    lambda line: line.lower().split(), value="str"
)
counts = words.group_by(lambda _, word: word).count(store="counts")
counts.to_stream().map_values(str, value="str").to("word-counts")
topology = builder.build()

if __name__ == "__main__":
    Streams(topology, app_id="word-count").run()
