"""The converter's version: part of the build key, so it changes when the same input would give other bytes."""

CONVERTER_VERSION = "1"
