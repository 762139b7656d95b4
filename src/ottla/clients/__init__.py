"""The client side: connections to brokers, metadata, and typed calls. Reaches a broker only over
the wire."""
