"""Cases of joins of streams: with streams, tables and global tables."""

from __future__ import annotations

from streams.case import Case

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
    Case(
        "a window is open until its grace has passed",
        "stream_left_join",
        [("left", "k", "a", 0), ("left", "l", "x", 14), ("right", "k", "b", 4)],
        [("k", "a+b", 4)],
    ),
    Case(
        "a left record that comes when its window is over does not wait",
        "stream_left_join",
        [("left", "l", "x", 40), ("left", "k", "a", 5)],
        [("k", "a+null", 5)],
    ),
]
