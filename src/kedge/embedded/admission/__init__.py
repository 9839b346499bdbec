"""Admission: the admission webhooks that a server asks about writes, as kube-apiserver does."""
