"""Load on a cluster while it is hurt, and the judge of what became of every record."""
