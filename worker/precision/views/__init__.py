"""The conversion report for people: as text for a terminal, as one HTML file for a browser."""
