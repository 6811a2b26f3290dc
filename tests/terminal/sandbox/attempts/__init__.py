"""Escape attempts, run inside a sandbox as a program of its own (standard library only).

Each attempt returns what it achieved, or None, or raises: only a returned value is an escape.
Every one runs in a child of its own, so that one cannot spoil the next. The world it runs in,
made outside, comes as JSON in the first argument.
"""
