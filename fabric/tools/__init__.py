"""The surface a model sees: tools, their arguments, and what they answer."""
