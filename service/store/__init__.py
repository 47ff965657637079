"""The object store: immutable facts put if absent, and blobs by digest."""
