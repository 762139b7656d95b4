"""The transaction coordinator as a replicated state machine: rules and state, no I/O, no clock."""
