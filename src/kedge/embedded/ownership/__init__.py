"""Field ownership: server-side apply, and `managedFields` of plain writes."""
