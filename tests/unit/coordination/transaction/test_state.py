"""The states of a transactional id."""

from ottla.coordination.transaction.state import BY_WIRE_NAME, VALID_PREVIOUS, State


def test_states_have_kafkas_numbers_and_names():
    assert [(int(state), state.wire_name) for state in State] == [
        (0, "Empty"),
        (1, "Ongoing"),
        (2, "PrepareCommit"),
        (3, "PrepareAbort"),
        (4, "CompleteCommit"),
        (5, "CompleteAbort"),
        (6, "Dead"),
        (7, "PrepareEpochFence"),
    ]
    assert BY_WIRE_NAME["PrepareCommit"] is State.PREPARE_COMMIT


def test_a_decided_outcome_cannot_turn_into_the_other():
    assert VALID_PREVIOUS[State.COMPLETE_COMMIT] == {State.PREPARE_COMMIT}
    assert VALID_PREVIOUS[State.COMPLETE_ABORT] == {State.PREPARE_ABORT}
    assert VALID_PREVIOUS[State.PREPARE_COMMIT] == {State.ONGOING}
    assert State.PREPARE_COMMIT not in VALID_PREVIOUS[State.PREPARE_ABORT]


def test_nothing_but_its_completion_follows_a_prepared_state():
    for prepared in (State.PREPARE_COMMIT, State.PREPARE_ABORT):
        following = {state for state, before in VALID_PREVIOUS.items() if prepared in before}
        assert len(following) == 1
        assert following.pop().is_complete


def test_every_state_says_what_it_may_follow():
    assert set(VALID_PREVIOUS) == set(State)
