"""Groups of real consumers as child processes: what they wrote down, and what must be so."""
