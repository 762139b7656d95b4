"""Reading records: alone or in a group, with positions, prefetch and commits."""
