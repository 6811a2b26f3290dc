"""The browser's way to terminals: tickets, one WebSocket a view, and the page itself."""
