"""FabricClient and its synchronous twin."""
