"""Training of classifiers, resumption of interrupted trainings, and evaluation of their predictions."""
