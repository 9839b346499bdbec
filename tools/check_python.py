"""Refuse a Python that is too old, in words, before pip does so in riddles."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036  # the one file that older ones must be able to run
    found = ".".join(map(str, sys.version_info[:3]))
    sys.exit("Kedge needs Python 3.11 or newer; %s is %s. Try: make PYTHON=python3.11" % (sys.executable, found))  # noqa: UP031
