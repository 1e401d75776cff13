"""The kinds of study, one package each."""
