"""Runtime of a job: logging, device, processes, locks, shards and provenance."""
