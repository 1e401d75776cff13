"""What notebooks call, offered by ``methods``, ``metrics`` and ``models``: one's own arrays in, arrays out."""
