"""Serves WSGI applications (PEP 3333): `prony-wsgi module:app`.

Nothing of this has to be imported by an application.
"""

from prony_wsgi._prony_wsgi import FileWrapper

__all__ = ["FileWrapper"]
