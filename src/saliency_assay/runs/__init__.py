"""Commands on the results of finished runs: ``compare``, ``keep`` and ``merge``."""
