"""Traffic: which share of it a route gives to each of two Services, and the write that changes this.

One module per provider reads and writes its kind of route (`gateway_api`, `istio`, `nginx`), `providers` knows them
all, and `shifting` has what they share: read the share, change it, and give back what was before. Only the weights of
the two Services are touched; everything else of a route stays as it is.
"""
