"""Bytes of a terminal as text, lines and screens."""
