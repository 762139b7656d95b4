"""The `ottla` command. One file a command; `main.py` imports only the one that is asked for."""
