"""The shared words; standard library only, imports nothing of ours."""
