"""A broker that stops asks the controller for help, but not for ever."""

from __future__ import annotations

from collections import deque

from ottla.broker.departure import depart
from ottla.broker.peers import PeerUnreachable
from ottla.errors import ErrorCode
from ottla.model.ids import BrokerId
from ottla.protocol.message import Message
from ottla.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from ottla.settings.replication import ReplicationSettings
from unit.net.running import run

ME = BrokerId(1)
AT_ONCE = ReplicationSettings(controlled_shutdown_retry_backoff_ms=0)
LEFT = ControlledShutdownResponse(remaining_partitions=[RemainingPartition("t", 0)])
DONE = ControlledShutdownResponse()


class Controller:
    """Answers as it was told to; then it cannot be reached."""

    def __init__(self, *answers: ControlledShutdownResponse | PeerUnreachable) -> None:
        self.answers = deque(answers)
        self.asked: list[tuple[int, int]] = []
        self.asked_while_following = 0

    async def stop_following(self) -> None:
        self.asked_while_following = len(self.asked)

    async def ask_controller(self, request: Message) -> Message:
        assert isinstance(request, ControlledShutdownRequest)
        self.asked.append((request.broker_id, request.broker_epoch))
        answer = self.answers.popleft() if self.answers else PeerUnreachable(2, "it is gone")
        if isinstance(answer, PeerUnreachable):
            raise answer
        return answer


def test_a_broker_goes_when_others_lead_all_that_it_led() -> None:
    controller = Controller(DONE)
    assert run(depart(ME, 7, controller, AT_ONCE, controller.stop_following))
    assert set(controller.asked) == {(1, 7)}


def test_a_broker_that_follows_nobody_any_more_is_taken_out_of_sets_in_sync_again() -> None:
    controller = Controller(DONE, DONE)
    assert run(depart(ME, 7, controller, AT_ONCE, controller.stop_following))
    assert controller.asked_while_following == 1
    assert not controller.answers


def test_a_broker_asks_again_while_something_is_left_or_the_controller_is_moving() -> None:
    moved = ControlledShutdownResponse(error_code=ErrorCode.NOT_CONTROLLER)
    controller = Controller(LEFT, moved, PeerUnreachable(2, "it died"), DONE)
    assert run(depart(ME, 7, controller, AT_ONCE, controller.stop_following))
    assert controller.asked_while_following == 4


def test_a_broker_that_nobody_helps_goes_in_the_end() -> None:
    controller = Controller()
    assert not run(depart(ME, 7, controller, AT_ONCE, controller.stop_following))
    assert len(controller.asked) == 1 + AT_ONCE.controlled_shutdown_max_retries


def test_a_broker_that_is_not_to_ask_goes_at_once() -> None:
    controller = Controller(DONE)
    settings = ReplicationSettings(controlled_shutdown_enable=False)
    assert not run(depart(ME, 7, controller, settings, controller.stop_following))
    assert not controller.asked
