"""The semantics battery as data: what goes in, with timestamps, and what must come out.

Written from the documented semantics of Kafka Streams, with its caches off: every update is sent.
Windows of the topologies: tumbling 10 ms with 5 ms grace, hopping 10 by 4 with 3, sliding 10 with
7, sessions of gap 5 with 6; joins within 10 ms with 4 ms grace, or 0 to 8 ms after with 2.
"""

from __future__ import annotations

from dataclasses import dataclass

Input = tuple[str, str | None, str | None, int]
Output = tuple[str | None, str | None, int]


@dataclass(frozen=True, slots=True)
class Case:
    """Inputs are topic, key, value, timestamp; outputs key, value, timestamp of the topic `out`."""

    about: str
    topology: str
    inputs: list[Input]
    outputs: list[Output]


def one_topic(*records: tuple[str | None, str | None, int]) -> list[Input]:
    return [("in", *record) for record in records]


STATELESS = [
    Case(
        "keeps what fulfils it", "filter", one_topic(("k", "a", 1), ("k", "b", 2)), [("k", "a", 1)]
    ),
    Case(
        "keeps what does not",
        "filter_not",
        one_topic(("k", "a", 1), ("k", "b", 2)),
        [("k", "b", 2)],
    ),
    Case(
        "gives a new key and value, and keeps the time",
        "map",
        one_topic(("k", "a", 7), (None, "b", 8)),
        [("a", "k", 7), ("b", None, 8)],
    ),
    Case(
        "sees nulls too",
        "map_values",
        one_topic(("k", "a", 1), (None, None, 2)),
        [("k", "k=a", 1), (None, "null=null", 2)],
    ),
    Case(
        "gives any number of records of one time",
        "flat_map",
        one_topic(("k", "ab", 3), ("l", None, 4)),
        [("a", "k", 3), ("b", "k", 3)],
    ),
    Case(
        "keeps the key",
        "flat_map_values",
        one_topic(("k", "ab", 3)),
        [("k", "a", 3), ("k", "b", 3)],
    ),
    Case(
        "a key may become null",
        "select_key",
        one_topic(("k", "a", 1), ("k", None, 2)),
        [("a", "a", 1), (None, None, 2)],
    ),
    Case(
        "a record goes to the first branch that takes it, others to the default",
        "branch",
        one_topic(("k", "ab", 1), ("k", "b", 2), ("k", "c", 3)),
        [("k", "c", 3)],
    ),
    Case(
        "records come in the order they were read",
        "merge",
        [("left", "k", "a", 5), ("right", "k", "b", 3), ("left", "l", "c", 4)],
        [("k", "a", 5), ("k", "b!", 3), ("l", "c", 4)],
    ),
    Case(
        "records without a key do not go through a repartition topic",
        "repartition",
        one_topic(("k", "a", 1), ("k", None, 2), ("k", "b", 3)),
        [("a", "a", 1), ("b", "b", 3)],
    ),
]

AGGREGATES = [
    Case(
        "every update is sent, with the newest time of the key",
        "count",
        one_topic(("k", "a", 10), ("l", "a", 5), ("k", "b", 3)),
        [("k", "1", 10), ("l", "1", 5), ("k", "2", 10)],
    ),
    Case("ignores null keys and values", "count", one_topic((None, "a", 1), ("k", None, 2)), []),
    Case(
        "groups by what is selected; a null group is dropped",
        "count_regrouped",
        one_topic(("k", "a", 1), ("l", "a", 2), ("m", None, 3), ("m", "b", 4)),
        [("a", "1", 1), ("a", "2", 2), ("b", "1", 4)],
    ),
    Case(
        "the first value is the first result",
        "reduce",
        one_topic(("k", "a", 1), ("k", "b", 2), ("k", None, 3)),
        [("k", "a", 1), ("k", "ab", 2)],
    ),
    Case(
        "begins with its initial value",
        "aggregate",
        one_topic(("k", "a", 1), ("k", "b", 2)),
        [("k", "a", 1), ("k", "ab", 2)],
    ),
    Case(
        "a result of null deletes, and the next record begins anew",
        "aggregate_to_nothing",
        one_topic(("k", "a", 1), ("k", "c", 2), ("k", "b", 3)),
        [("k", "a", 1), ("k", None, 2), ("k", "b", 3)],
    ),
    Case(
        "several streams make one result",
        "cogroup",
        [("left", "k", "a", 1), ("right", "k", "b", 2), ("left", "k", "c", 3)],
        [("k", "|a", 1), ("k", "b|a", 2), ("k", "b|ac", 3)],
    ),
    Case(
        "several streams make one result a window",
        "cogroup_windowed",
        [("left", "k", "a", 1), ("right", "k", "b", 2), ("left", "k", "c", 13)],
        [("k@0/10", "|a", 1), ("k@0/10", "b|a", 2), ("k@10/20", "|c", 13)],
    ),
]

WINDOWS = [
    Case(
        "a window excludes its end",
        "tumbling_count",
        one_topic(("k", "a", 0), ("k", "a", 9), ("k", "a", 10)),
        [("k@0/10", "1", 0), ("k@0/10", "2", 9), ("k@10/20", "1", 10)],
    ),
    Case(
        "takes late records until end and grace have passed, not longer",
        "tumbling_count",
        one_topic(("k", "a", 5), ("l", "a", 14), ("k", "a", 3), ("l", "a", 15), ("k", "a", 4)),
        [("k@0/10", "1", 5), ("l@10/20", "1", 14), ("k@0/10", "2", 5), ("l@10/20", "2", 15)],
    ),
    Case(
        "reduces in each window anew",
        "tumbling_reduce",
        one_topic(("k", "a", 1), ("k", "b", 2), ("k", "c", 11)),
        [("k@0/10", "a", 1), ("k@0/10", "ab", 2), ("k@10/20", "c", 11)],
    ),
    Case(
        "sends one result when the window closes",
        "tumbling_close",
        one_topic(("k", "a", 1), ("k", "a", 2), ("l", "a", 9), ("k", "a", 14), ("k", "a", 15)),
        [("k@0/10", "2", 2), ("l@0/10", "1", 9)],
    ),
    Case(
        "a record is in all windows it overlaps",
        "hopping",
        one_topic(("k", "a", 9), ("k", "b", 12)),
        [
            ("k@0/10", "a", 9),
            ("k@4/14", "a", 9),
            ("k@8/18", "a", 9),
            ("k@4/14", "ab", 12),
            ("k@8/18", "ab", 12),
            ("k@12/22", "b", 12),
        ],
    ),
    Case(
        "windows close one after the other",
        "hopping_close",
        one_topic(("k", "a", 9), ("k", "b", 13), ("k", "c", 17)),
        [("k@0/10", "a", 9), ("k@4/14", "ab", 13)],
    ),
    Case(
        "a window ends at each record, and one begins behind it when another follows",
        "sliding",
        one_topic(("k", "a", 20), ("k", "b", 25)),
        [("k@10/20", "a", 20), ("k@21/31", "b", 25), ("k@15/25", "ab", 25)],
    ),
    Case(
        "a record in between is added to the windows around it",
        "sliding",
        one_topic(("k", "a", 20), ("k", "b", 28), ("k", "c", 24)),
        [
            ("k@10/20", "a", 20),
            ("k@21/31", "b", 28),
            ("k@18/28", "ab", 28),
            ("k@21/31", "bc", 28),
            ("k@18/28", "abc", 28),
            ("k@14/24", "ac", 24),
            ("k@25/35", "b", 28),
        ],
    ),
    Case(
        "early records share the first window",
        "sliding",
        one_topic(("k", "a", 2), ("k", "b", 6)),
        [("k@0/10", "a", 2), ("k@3/13", "b", 6), ("k@0/10", "ab", 6)],
    ),
    Case(
        "a sliding window includes its end and closes after it",
        "sliding_close",
        one_topic(("k", "a", 20), ("k", "b", 27), ("k", "c", 28)),
        [("k@10/20", "a", 20)],
    ),
    Case(
        "a record in the gap joins sessions, which are deleted first",
        "session",
        one_topic(("k", "a", 0), ("k", "b", 8), ("k", "c", 4)),
        [
            ("k@0/0", "a", 0),
            ("k@8/8", "b", 8),
            ("k@0/0", None, 0),
            ("k@8/8", None, 8),
            ("k@0/8", "abc", 8),
        ],
    ),
    Case(
        "a session goes on while the gap is not longer",
        "session_count",
        one_topic(("k", "a", 0), ("k", "a", 5), ("k", "a", 11)),
        [("k@0/0", "1", 0), ("k@0/0", None, 0), ("k@0/5", "2", 5), ("k@11/11", "1", 11)],
    ),
    Case(
        "a late record whose session has closed is dropped",
        "session_count",
        one_topic(("k", "a", 0), ("k", "a", 20), ("k", "a", 8), ("k", "a", 9)),
        [("k@0/0", "1", 0), ("k@20/20", "1", 20), ("k@9/9", "1", 9)],
    ),
    Case(
        "reduces a session's values in the order of its parts",
        "session_reduce",
        one_topic(("k", "a", 0), ("k", "b", 4)),
        [("k@0/0", "a", 0), ("k@0/0", None, 0), ("k@0/4", "ab", 4)],
    ),
    Case(
        "sends a session once, when gap and grace have passed",
        "session_close",
        one_topic(("k", "a", 0), ("k", "a", 4), ("l", "a", 15), ("l", "a", 16)),
        [("k@0/4", "2", 4)],
    ),
    Case(
        "holds windows until they close",
        "suppress_tumbling",
        one_topic(("k", "a", 1), ("k", "a", 2), ("k", "a", 14), ("k", "a", 3), ("k", "a", 15)),
        [("k@0/10", "3", 3)],
    ),
    Case(
        "sessions that were merged are never told of",
        "suppress_session",
        one_topic(("k", "a", 0), ("k", "a", 8), ("k", "a", 4), ("l", "a", 30)),
        [("k@0/8", "3", 8)],
    ),
    Case(
        "the last update of a key is let go after the time limit",
        "suppress_time",
        one_topic(("k", "a", 0), ("k", "b", 5), ("l", "c", 7), ("l", "d", 8), ("l", "e", 15)),
        [("k", "ab", 5), ("l", "cde", 15)],
    ),
    Case(
        "over its limit the oldest goes early",
        "suppress_records",
        one_topic(("k", "a", 0), ("l", "a", 1), ("k", "a", 2), ("m", "a", 3)),
        [("k", "2", 2)],
    ),
    Case(
        "an update of a window takes the old value out of its group first",
        "windowed_regrouped",
        one_topic(("k", "a", 1), ("k", "a", 2)),
        [("k", "+1", 1), ("k", "+1-1+2", 2)],
    ),
]

TABLES = [
    Case(
        "a null deletes, and a deletion of nothing is told as well",
        "table",
        one_topic(("k", "a", 1), ("k", None, 2), ("l", None, 3), (None, "b", 4)),
        [("k", "a", 1), ("k", None, 2), ("l", None, 3)],
    ),
    Case(
        "the last offset wins, whatever its time",
        "table_kept",
        one_topic(("k", "a", 10), ("k", "b", 5)),
        [("k", "a", 10), ("k", "b", 5)],
    ),
    Case(
        "without a store a filtered row is always told as deleted",
        "table_filter",
        one_topic(("k", "b", 1), ("k", "a", 2), ("k", "b", 3)),
        [("k", None, 1), ("k", "a", 2), ("k", None, 3)],
    ),
    Case(
        "with a store above only rows that were there are deleted",
        "table_filter_kept",
        one_topic(("k", "a", 1), ("k", "b", 2), ("k", "a", 3), ("k", "a", 4)),
        [("k", "b", 2), ("k", None, 3)],
    ),
    Case(
        "a filter's own store does not spare deletions by itself",
        "table_filter_stored",
        one_topic(("k", "b", 1), ("k", "a", 2), ("k", "b", 3)),
        [("k", None, 1), ("k", "a", 2), ("k", None, 3)],
    ),
    Case(
        "deletions stay deletions",
        "table_map_values",
        one_topic(("k", "a", 1), ("k", None, 2)),
        [("k", "a!", 1), ("k", None, 2)],
    ),
    Case(
        "a stream becomes a table of its new keys",
        "to_table",
        one_topic(("k", "a", 1), ("a", None, 2)),
        [("a", "a", 1), ("a", None, 2)],
    ),
    Case(
        "a row that moves leaves its old group before it enters the new one",
        "table_count",
        one_topic(("k", "a", 1), ("l", "a", 2), ("k", "b", 3), ("l", None, 4)),
        [("a", "1", 1), ("a", "2", 2), ("a", "1", 3), ("b", "1", 3), ("a", "0", 4)],
    ),
    Case(
        "within a group the old value goes and the new one comes in one update",
        "table_reduce",
        one_topic(("k", "a", 1), ("l", "ab", 2), ("k", "ac", 3), ("l", None, 4)),
        [("a", "a", 1), ("a", "a+ab", 2), ("a", "a+ab-a+ac", 3), ("a", "a+ab-a+ac-ab", 4)],
    ),
    Case(
        "aggregates add and subtract",
        "table_aggregate",
        one_topic(("k", "a", 1), ("k", "b", 2), ("k", None, 3)),
        [("a", "+k", 1), ("a", "+k-k", 2), ("b", "+k", 2), ("b", "+k-k", 3)],
    ),
    Case(
        "old values go through filters and mappings",
        "table_filter_count",
        one_topic(("k", "a", 1), ("k", "c", 2), ("k", "a", 3)),
        [("aa", "1", 1), ("aa", "0", 2), ("aa", "1", 3)],
    ),
    Case(
        "a count of counts follows them; nothing is taken from a group that is not there",
        "count_of_counts",
        one_topic(("k", "a", 1), ("l", "a", 2), ("k", "a", 3)),
        [
            ("0", None, 1),
            ("1", "1", 1),
            ("0", None, 2),
            ("1", "2", 2),
            ("1", "1", 3),
            ("2", "1", 3),
        ],
    ),
]

STREAM_JOINS = [
    Case(
        "joins all partners within the window, at the later of both times",
        "stream_join",
        [
            ("left", "k", "a", 0),
            ("right", "k", "b", 10),
            ("right", "k", "c", 11),
            ("left", "k", "d", 5),
            ("left", "l", "e", 5),
        ],
        [("k", "a+b", 10), ("k", "d+b", 10), ("k", "d+c", 11)],
    ),
    Case(
        "ignores null keys and values",
        "stream_join",
        [
            ("left", None, "a", 0),
            ("right", None, "a", 0),
            ("left", "k", None, 0),
            ("right", "k", "b", 0),
        ],
        [],
    ),
    Case(
        "records of one key and time are all kept",
        "stream_join",
        [("left", "k", "a", 1), ("left", "k", "b", 1), ("right", "k", "c", 1)],
        [("k", "a+c", 1), ("k", "b+c", 1)],
    ),
    Case(
        "a left record without a partner comes once its window has closed",
        "stream_left_join",
        [
            ("left", "k", "a", 0),
            ("left", "k", "b", 14),
            ("left", "k", "c", 15),
            ("right", "k", "d", 16),
        ],
        [("k", "a+null", 0), ("k", "b+d", 16), ("k", "c+d", 16)],
    ),
    Case(
        "no null comes before a late partner within grace",
        "stream_left_join",
        [
            ("left", "k", "a", 0),
            ("left", "l", "x", 13),
            ("right", "k", "b", 3),
            ("left", "l", "y", 40),
        ],
        [("k", "a+b", 3), ("l", "x+null", 13)],
    ),
    Case(
        "the left join drops right records that find nobody",
        "stream_left_join",
        [
            ("right", "k", "a", 0),
            ("right", "k", "b", 50),
            ("left", None, "c", 51),
            ("left", "k", None, 52),
        ],
        [(None, "c+null", 51)],
    ),
    Case(
        "an outer join brings both sides' lonely records",
        "stream_outer_join",
        [("left", "k", "a", 0), ("right", "l", "b", 1), ("left", "x", "z", 40)],
        [("k", "a+null", 0), ("l", "null+b", 1)],
    ),
    Case(
        "a right record must not be before the left one",
        "stream_join_after",
        [
            ("left", "k", "a", 10),
            ("right", "k", "b", 9),
            ("right", "k", "c", 10),
            ("right", "k", "d", 18),
            ("right", "k", "e", 19),
        ],
        [("k", "a+c", 10), ("k", "a+d", 18)],
    ),
    Case(
        "each side waits as long as it can be reached",
        "stream_outer_join_after",
        [
            ("left", "k", "a", 10),
            ("right", "l", "b", 10),
            ("right", "x", "y", 13),
            ("left", "x", "z", 21),
        ],
        [("l", "null+b", 10), ("k", "a+null", 10), ("x", "null+y", 13)],
    ),
    Case(
        "streams are joined by their new keys",
        "stream_join_rekeyed",
        [("left", "k", "a", 0), ("right", "l", "a", 1), ("right", "l", "b", 2)],
        [("a", "a+a", 1)],
    ),
    Case(
        "a left record whose new key is null is kept",
        "stream_left_join_rekeyed",
        [("left", "k", "a", 0), ("right", "a", "b", 1)],
        [("a", "a+b", 1)],
    ),
    Case(
        "a stream sees the table as it is at that moment",
        "stream_table_join",
        [
            ("left", "k", "a", 1),
            ("right", "k", "b", 2),
            ("left", "k", "c", 1),
            ("right", "k", None, 3),
            ("left", "k", "d", 4),
            ("left", None, "e", 5),
            ("left", "k", None, 6),
        ],
        [("k", "c+b", 1)],
    ),
    Case(
        "a left join with a table keeps records without a row and without a key",
        "stream_table_left_join",
        [
            ("left", "k", "a", 1),
            ("right", "k", "b", 2),
            ("left", "k", "c", 3),
            ("left", None, "e", 5),
            ("left", "k", None, 6),
        ],
        [("k", "a+null", 1), ("k", "c+b", 3), (None, "e+null", 5)],
    ),
    Case(
        "a derived table is looked up through what derives it",
        "stream_filtered_table_join",
        [
            ("right", "k", "a", 1),
            ("left", "k", "x", 2),
            ("right", "k", "b", 3),
            ("left", "k", "y", 4),
        ],
        [("k", "x+a!", 2)],
    ),
    Case(
        "a global table is joined by any key",
        "stream_global_join",
        [
            ("right", "a", "b", 9),
            ("left", "k", "a", 1),
            ("left", None, "a", 2),
            ("left", "k", "c", 3),
        ],
        [("k", "a+b", 1), (None, "a+b", 2)],
    ),
    Case(
        "a left join with a global table keeps all but null values",
        "stream_global_left_join",
        [("right", "a", "b", 9), ("left", "k", "c", 3), ("left", "k", None, 4)],
        [("k", "c+null", 3)],
    ),
]

TABLE_JOINS = [
    Case(
        "an update of either side updates the result, a deletion deletes it",
        "table_join",
        [
            ("left", "k", "a", 3),
            ("right", "k", "b", 1),
            ("left", "k", "c", 2),
            ("right", "k", None, 5),
            ("right", "k", "d", 6),
            ("left", "k", None, 7),
            ("left", "l", None, 8),
        ],
        [("k", "a+b", 3), ("k", "c+b", 2), ("k", None, 5), ("k", "c+d", 6), ("k", None, 7)],
    ),
    Case(
        "a left join keeps all left rows",
        "table_left_join",
        [
            ("left", "k", "a", 1),
            ("right", "k", "b", 2),
            ("right", "k", None, 3),
            ("left", "k", None, 4),
            ("right", "k", "c", 5),
            ("left", "l", None, 6),
        ],
        [("k", "a+null", 1), ("k", "a+b", 2), ("k", "a+null", 3), ("k", None, 4)],
    ),
    Case(
        "an outer join keeps all rows, until both are gone",
        "table_outer_join",
        [
            ("left", "k", "a", 1),
            ("right", "k", "b", 2),
            ("left", "k", None, 3),
            ("right", "k", None, 4),
            ("right", "k", None, 5),
        ],
        [("k", "a+null", 1), ("k", "a+b", 2), ("k", "null+b", 3), ("k", None, 4)],
    ),
    Case(
        "a stored result sends the same updates",
        "table_join_stored",
        [("left", "k", "a", 1), ("right", "k", "b", 2), ("left", "k", None, 3)],
        [("k", "a+b", 2), ("k", None, 3)],
    ),
    Case(
        "a filter behind a join needs no store to know what was there",
        "table_join_filtered",
        [
            ("left", "k", "b", 1),
            ("right", "k", "a", 2),
            ("right", "k", "b", 3),
            ("left", "k", "c", 4),
        ],
        [("k", "b+null", 1), ("k", "b+a", 2), ("k", "b+null", 3), ("k", None, 4)],
    ),
    Case(
        "old results leave their group",
        "table_join_count",
        [("left", "k", "a", 1), ("right", "k", "b", 2), ("left", "l", "a", 3)],
        [("a+null", "1", 1), ("a+null", "0", 2), ("a+b", "1", 2), ("a+null", "1", 3)],
    ),
    Case(
        "one table on both sides sends an update through each",
        "table_join_twice",
        [("left", "k", "a", 1), ("right", "k", "b", 2)],
        [("k", "a+null+null", 1), ("k", "a+b+b!", 2), ("k", "a+b+b!", 2)],
    ),
    Case(
        "an aggregate is a table like others",
        "count_join_table",
        [("left", "k", "a", 1), ("right", "k", "b", 2), ("left", "k", "c", 3)],
        [("k", "1+null", 1), ("k", "1+b", 2), ("k", "2+b", 3)],
    ),
    Case(
        "many rows can point to one, and all follow its changes",
        "foreign_join",
        [
            ("left", "k", "a1", 1),
            ("left", "l", "a2", 2),
            ("right", "a", "x", 3),
            ("right", "a", "y", 4),
            ("right", "a", None, 5),
        ],
        [
            ("k", "a1+x", 3),
            ("l", "a2+x", 3),
            ("k", "a1+y", 4),
            ("l", "a2+y", 4),
            ("k", None, 5),
            ("l", None, 5),
        ],
    ),
    Case(
        "a row that points elsewhere gets the other's value, or none",
        "foreign_join",
        [
            ("right", "a", "x", 1),
            ("right", "b", "y", 2),
            ("left", "k", "a", 3),
            ("left", "k", "b", 4),
            ("left", "k", "c", 5),
            ("left", "k", None, 6),
        ],
        [("k", "a+x", 3), ("k", "b+y", 4), ("k", None, 5), ("k", None, 6)],
    ),
    Case(
        "a left foreign join keeps all rows",
        "foreign_left_join",
        [
            ("left", "k", "a", 1),
            ("right", "a", "x", 2),
            ("right", "a", None, 3),
            ("left", "k", None, 4),
        ],
        [("k", "a+null", 1), ("k", "a+x", 2), ("k", "a+null", 3), ("k", None, 4)],
    ),
    Case(
        "a row that points nowhere has no inner result",
        "foreign_join_null_keys",
        [
            ("right", "a", "x", 1),
            ("left", "k", "c", 2),
            ("left", "k", "a", 3),
            ("left", "k", "c", 4),
        ],
        [("k", "a+x", 3), ("k", None, 4)],
    ),
    Case(
        "a row that points nowhere has a left result",
        "foreign_left_join_null_keys",
        [("right", "a", "x", 1), ("left", "k", "c", 2), ("left", "k", "a", 3)],
        [("k", "c+null", 2), ("k", "a+x", 3)],
    ),
    Case(
        "a join sees a suppressed table as it was last told",
        "suppressed_join",
        [
            ("left", "k", "a", 0),
            ("right", "k", "x", 1),
            ("left", "l", "b", 8),
            ("right", "k", "y", 9),
        ],
        [("k", "a+x", 1), ("k", "a+y", 9)],
    ),
]

PROCESSORS = [
    Case(
        "timers of stream time fire first with the first record, then once for all they missed",
        "process",
        one_topic(("k", "a", 4), ("l", "b", 5), ("k", "c", 25), (None, "d", 26)),
        [
            ("k", "a'", 4),
            ("stream", "k=a;", 4),
            ("l", "b'", 5),
            ("k", "c'", 25),
            ("stream", "k=c;l=b;", 25),
        ],
    )
]

ALL = [*STATELESS, *AGGREGATES, *WINDOWS, *TABLES, *STREAM_JOINS, *TABLE_JOINS, *PROCESSORS]
