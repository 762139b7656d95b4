"""One small face for the real clients, so that one test runs on all of them."""
