"""The decisions: pure functions of frozen values and `now`. No I/O, no clock, no randomness, no asyncio."""
