"""Generated protobuf code, one package per protocol version; never edited."""
