"""Builds: requests for engines, from the submission to the end that counts, whatever is lost on the way."""
