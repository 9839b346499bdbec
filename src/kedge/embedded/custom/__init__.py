"""Custom kinds: CustomResourceDefinitions, and the defaults, checks, rules and columns of the objects they describe."""
