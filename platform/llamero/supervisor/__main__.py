"""``python -m llamero.supervisor HOME HOST PORT``: what manage.py up becomes."""

import sys
from pathlib import Path

from llamero.supervisor.supervisor import supervise

if __name__ == "__main__":
    sys.exit(supervise(Path(sys.argv[1]), host=sys.argv[2], port=int(sys.argv[3])))
