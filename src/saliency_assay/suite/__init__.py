"""The reference suite: frozen tasks with the scores of published methods, which a new method can be compared with."""

VERSION = "2026.12"
"""Version of tasks, methods, metrics and scores; a later version is another suite."""
