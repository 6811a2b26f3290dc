"""The gRPC server: authenticate, convert, call, convert."""
