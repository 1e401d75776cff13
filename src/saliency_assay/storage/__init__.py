"""File formats: Zarr stores of arrays, and tables of scores and results."""

WHOLE_SET = -1
"""Value of ``image`` in the rows of a score table that are scores of a whole set."""
GROUP = "group"
"""Array of a data set and column of score tables: the name of each image's group, such as a patient.

Images of one group are not independent.
"""
