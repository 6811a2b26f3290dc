"""Traces with OpenTelemetry: an extra, imported only where ``trace.endpoint`` is set."""
