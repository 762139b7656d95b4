"""The same clients for threads and scripts: thin faces over one loop thread."""
