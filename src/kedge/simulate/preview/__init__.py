"""Preview: what would become of placements, played through by the real controllers in virtual time.

    picture = await take(client, ["shop"])                       # reads the hub, and nothing else
    preview = previewed(picture, Change(objects), times)         # on servers of its own, in this process

The hub's controllers are those of the `hub` role. Members are modelled (`agents`): what they are given becomes
available after the time that is expected of them.
"""
