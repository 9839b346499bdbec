"""A member: joining the fleet, applying works, and reporting what becomes of them."""
