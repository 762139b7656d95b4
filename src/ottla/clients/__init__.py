"""The client side: connections, metadata and typed calls. Reaches a broker only over the wire."""
