"""What all routes share: problems, bodies, pages, entity tags, ranges and downloads."""
