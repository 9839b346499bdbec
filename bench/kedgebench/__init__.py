"""What Kedge's client, cache and queue cost, beside other Kubernetes clients, in one run against a real API server.

    make bench                          # everything, some minutes
    make bench ARGS="--quick"           # a smoke run, under a minute
    make bench ARGS="--json out.json"   # the numbers, for programs

Measures the client's CPU time, not the time on the clock, so that neighbours on the machine count little. Every
contender runs in a process of its own and is asked the same, in turns.
"""
