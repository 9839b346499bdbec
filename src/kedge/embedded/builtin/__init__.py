"""The built-in kinds: their schemas, defaults and rules, as kube-apiserver has them."""
