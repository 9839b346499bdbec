"""Preview: what a change would do to placements, simulated with the real controllers in virtual time.

    fleet = await read_fleet(client, targets, changed, now)            # only reads the hub
    courses = run_preview(fleet, Change(targets, changed), Assumptions())    # on a server in this process

The hub's controllers are those of the `hub` role. Members are modelled (`agents`): what is placed on them becomes
available after the time that is expected of them.
"""
