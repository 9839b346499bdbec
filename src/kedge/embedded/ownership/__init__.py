"""Who owns which fields of an object: server-side apply, and the tracking of plain writes."""
