"""The control plane of pty-fabric: owned, persistent terminals for agents."""
