"""Whether a program waits for input."""
