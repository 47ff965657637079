"""The embedded default: Valkey, the API and one worker as supervised processes over one data directory."""
