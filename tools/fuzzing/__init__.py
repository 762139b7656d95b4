"""The parts of tools/fuzz.py: what is sent, by whom, and how a normal client fares meanwhile."""
