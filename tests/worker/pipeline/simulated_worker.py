"""The real worker with the SIMULATED builder of this folder; settings come from the environment."""

import sys

from service import log
from service.settings import Settings
from worker.app import run_worker
from worker.engine import run

if __name__ == "__main__":
    run.MODULE = "simulated_builder"
    settings = Settings()
    log.configure(settings.log_level, settings.log_json)
    sys.exit(run_worker(settings))
