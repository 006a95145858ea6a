"""Listens SLOW_START_S seconds after its start."""

import os
import time

import pingserver

time.sleep(float(os.environ.get("SLOW_START_S", "3")))
pingserver.main()
