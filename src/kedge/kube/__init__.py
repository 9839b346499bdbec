"""Speaking Kubernetes: transport, config, client, cache, queue, controller, lease, manager.

Read in that order; each is one noun, and knows only those before it. `connect` is how to get to a server over sockets.
"""
