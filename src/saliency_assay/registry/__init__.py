"""Registry records, their parameters, and the signatures of the functions that they name."""
