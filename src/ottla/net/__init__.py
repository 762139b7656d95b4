"""The asyncio edge: sockets on one side, whole frames on the other."""
