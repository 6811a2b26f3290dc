"""The fabric as an MCP server; needs the extra ``pty-fabric[mcp]``."""
