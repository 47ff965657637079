"""Models: uploaded graphs with their external data."""
