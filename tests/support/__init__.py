"""What several batteries need: a broker as a child process, raw requests, client drivers."""
