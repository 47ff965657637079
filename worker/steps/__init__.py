"""The steps of a build, one a file: each takes the context and the work so far, and answers the work with its part."""
