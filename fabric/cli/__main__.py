"""``python -m fabric.cli`` is the command ``fabric``."""

import sys

from fabric.cli.main import main

sys.exit(main())
