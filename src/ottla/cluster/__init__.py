"""The cluster's metadata: a versioned tree that keeps it, an immutable picture to read it from."""
