"""The coordinators as replicated state machines: they decide, others write, replay applies."""
