"""The shared words as protobuf messages and back."""
