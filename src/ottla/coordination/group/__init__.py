"""The group coordinator: members, generations, assignments and committed offsets of groups."""
