"""Workers, as they announce themselves."""
