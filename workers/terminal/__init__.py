"""The PTY master and what is typed into it."""
