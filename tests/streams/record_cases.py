"""Cases of streams: record by record, aggregates, windows, processors."""

from __future__ import annotations

from streams.case import Case, one_topic

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
    Case(
        "records of one time share their window",
        "sliding",
        one_topic(("k", "a", 20), ("k", "b", 20)),
        [("k@10/20", "a", 20), ("k@10/20", "ab", 20)],
    ),
    Case(
        "no window begins behind a record that nothing follows in time",
        "sliding",
        one_topic(("k", "a", 20), ("k", "b", 25), ("k", "c", 40)),
        [("k@10/20", "a", 20), ("k@21/31", "b", 25), ("k@15/25", "ab", 25), ("k@30/40", "c", 40)],
    ),
    Case(
        "a session that stays the same is updated, not deleted",
        "session_count",
        one_topic(("k", "a", 5), ("k", "a", 5)),
        [("k@5/5", "1", 5), ("k@5/5", "2", 5)],
    ),
    Case(
        "a session that ended gap and grace ago is not found again",
        "session_count",
        one_topic(("k", "a", 20), ("l", "a", 31), ("k", "a", 22)),
        [("k@20/20", "1", 20), ("l@31/31", "1", 31), ("k@22/22", "1", 22)],
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
