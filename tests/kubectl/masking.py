"""What may differ between two servers: uids, resourceVersions, times, IPs and generated suffixes; nothing else."""

from __future__ import annotations

import re

_MASKS = [
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"(resourceVersion\\*\"?: ?)\\*\"\d+\\*\"", r"\1RV"),
    (r"(Resource Version: +)\d+", r"\1RV"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
    (r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b", "IP"),
    (r"\(x\d+ over (\d+[smhd])+\)", "(xN over AGE)"),
    (r"<(unknown|invalid)>(?=\s)", "AGE"),
    (r"(?<![\w.-])(\d+[smhd]){1,2}(?![\w.-])", "AGE"),
    (r"\b(\w[\w-]*?)-[bcdfghjklmnpqrstvwxz2456789]{8,10}-[bcdfghjklmnpqrstvwxz2456789]{5}\b", r"\1-HASH-SUFFIX"),
    (r"\b(web|db|every)-[bcdfghjklmnpqrstvwxz2456789]{8,10}\b", r"\1-HASH"),
    (r"\b(once|db|every|web|kube-api-access)-[bcdfghjklmnpqrstvwxz2456789]{5}\b", r"\1-SUFFIX"),
    (r"((pod-template|controller-revision)-hash\"?(: |=)\"?)[\w-]+", r"\1HASH"),
    (r"\d{7,}", "NUMBER"),  # the end of an event's name, hashes that happen to be numbers
    (r"\.[0-9a-f]{16}\b", ".EVENT"),
]


def masked(text: str) -> str:
    """The text with all that may differ made equal; columns are as wide as their widest cell, so width is too."""
    for pattern, instead in _MASKS:
        text = re.sub(pattern, instead, text)
    lines = [re.sub(r"[ \t]{2,}", "  ", line).rstrip() for line in text.splitlines()]
    return "\n".join(lines)
