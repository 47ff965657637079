"""Models that atoll writes itself: random weights in the structure of real exports."""
