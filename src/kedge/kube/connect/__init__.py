"""Getting to a server: where it is, whom to trust, who we are, and the sockets in between.

    transport = HttpsTransport(load())          # as kubectl would; or the pod's service account

`config` is the face; `connection` is what it gives, `https` what is made of that.
"""
