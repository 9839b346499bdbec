"""An API server without a cluster: a versioned store, the verbs of Kubernetes on it, and a way in without sockets.

server = Server(clock=SystemClock(), rng=Random(1))
client = Client(InProcessTransport(server, rng=Random(2)))
"""
