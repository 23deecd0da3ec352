"""Serves Tryton on 127.0.0.1 and the port of the first argument, until standard input ends.

The test process holds the other end of standard input. The kernel closes it when that process ends, however it ends, so no
server outlives the tests. TRYTOND_CONFIG and TRYTOND_DATABASE_NAMES say what is served.
"""
import os
import sys
import threading

from trytond.application import app
from werkzeug.serving import run_simple


def end_with_the_tests():
    sys.stdin.buffer.read()
    os._exit(0)


# After the import: Tryton refuses to be loaded beside another thread.
threading.Thread(target=end_with_the_tests, daemon=True).start()
run_simple("127.0.0.1", int(sys.argv[1]), app, threaded=True)
