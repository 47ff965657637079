"""Engines: serialized plans by digest, with their manifests."""
