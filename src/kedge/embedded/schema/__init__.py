"""What objects may look like: schemas of built-in and custom kinds, and what follows from them alone."""
