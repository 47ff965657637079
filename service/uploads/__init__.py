"""Uploads: bytes that are hashed while they arrive, and become blobs."""
