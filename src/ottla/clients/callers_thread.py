"""Where functions of the user's run: in the thread that waits for the loop, if one does.

A coroutine that a blocking call runs may want a function called that blocks, or that uses the same
client again (a rebalance listener that commits). It must not run on the loop; the caller's thread,
which waits, runs it.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
from collections.abc import Awaitable, Callable
from typing import Any

Item = tuple[Callable[[], Any], asyncio.Future[Any]] | None
"""Something to run in the caller's thread, or None when the coroutine is done."""

inbox_of_caller: contextvars.ContextVar[queue.SimpleQueue[Item] | None] = contextvars.ContextVar(
    "ottla_caller", default=None
)


async def in_callers_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a user's function where its caller waits; on a plain loop, here. Awaits coroutines."""
    inbox = inbox_of_caller.get()
    if inbox is None:
        result = function(*arguments)
        return await result if isinstance(result, Awaitable) else result
    future = asyncio.get_running_loop().create_future()
    inbox.put((lambda: function(*arguments), future))
    return await future
