"""The command ``fabric``."""
