"""OAM: the kinds of the Open Application Model that Kedge rolls out, as the seed and KubeVela have them."""
