"""One file an API: what the broker does when it is asked."""
