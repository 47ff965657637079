"""`atoll demo`: the whole path, from a model to a verified engine, on this machine."""
