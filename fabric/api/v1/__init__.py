"""Generated from ``proto/fabric/api/v1`` by ``proto/generate.py``; never edited."""
