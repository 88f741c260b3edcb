"""``python -m pyfastenv``: the same as ``pyfastenv``."""

import sys

from pyfastenv.cli import main

sys.exit(main())
