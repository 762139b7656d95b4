"""What several batteries need: a broker as a child process, raw wire requests, real-client drivers."""
