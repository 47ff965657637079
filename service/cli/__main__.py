"""`python -m service.cli`: the same as `atoll`, for processes that start it by their own interpreter."""

from service.cli.app import main

main()
