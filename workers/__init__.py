"""What runs on a node, beside the shell."""
