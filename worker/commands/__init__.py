"""The worker's commands: the command line finds them by the entry-point group `atoll.commands`."""
