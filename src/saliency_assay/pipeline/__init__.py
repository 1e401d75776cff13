"""Inputs, parameters and plans of rules, for the Snakefile."""
