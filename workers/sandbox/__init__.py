"""How a shell is confined."""
