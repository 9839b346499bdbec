"""Connecting to a server: where it is, whom to trust, who we are, and the sockets.

    transport = HttpsTransport(load())          # as kubectl would; or the pod's service account

`config` loads a `Connection`; `https` opens a transport for it.
"""
