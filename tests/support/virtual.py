"""A loop whose time jumps to the next timer instead of passing, in asyncio's own order."""

from kedge.simulate.loop import Loop as VirtualLoop
from kedge.simulate.loop import run

__all__ = ["VirtualLoop", "run"]
