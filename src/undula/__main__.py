"""``python -m undula`` is the command ``undula``."""

import sys

from .cli import main

sys.exit(main())
