"""Cases of tables, and of joins of tables."""

from __future__ import annotations

from streams.case import Case, one_topic

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
    Case(
        "old results of either side's change leave their group",
        "table_left_join_count",
        [("left", "k", "a", 1), ("right", "k", "b", 2), ("right", "k", "c", 3)],
        [("a+null", "1", 1), ("a+null", "0", 2), ("a+b", "1", 2), ("a+b", "0", 3), ("a+c", "1", 3)],
    ),
    Case(
        "while several updates wait, a join sees what was before the first of them",
        "suppressed_join",
        [
            ("left", "k", "a", 0),
            ("left", "l", "z", 8),
            ("left", "k", "b", 10),
            ("left", "k", "c", 12),
            ("right", "k", "x", 13),
        ],
        [("k", "a+null", 0), ("k", "a+x", 13)],
    ),
    Case(
        "windows are joined with the same windows",
        "windowed_join",
        [("left", "k", "a", 1), ("right", "k", "a", 2), ("right", "k", "a", 11)],
        [("k@0/10", "1+null", 1), ("k@0/10", "1+1", 2), ("k@10/20", "null+1", 11)],
    ),
    Case(
        "a table joined with itself sends an update through both sides",
        "table_self_join",
        one_topic(("k", "a", 1), ("k", None, 2)),
        [("k", "a+a", 1), ("k", "a+a", 1)],
    ),
]
