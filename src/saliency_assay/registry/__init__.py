"""Parts of registry records: parameters, directions of scores, and signatures of the registered functions."""
