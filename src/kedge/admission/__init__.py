"""What is refused before it is stored."""
