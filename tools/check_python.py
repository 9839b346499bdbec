"""Refuse a Python that is too old, in words, before pip does so in riddles."""

import sys

if sys.version_info < (3, 11):
    sys.exit(f"Kedge needs Python 3.11 or newer; {sys.executable} is {sys.version.split()[0]}. Try: make PYTHON=python3.11")
