"""The only room that knows Ray."""
