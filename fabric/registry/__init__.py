"""Who owns which session, and where it runs."""
