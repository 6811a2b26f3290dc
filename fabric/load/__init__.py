"""Load on a fabric, and what came of it; the way in is ``fabric load``."""
