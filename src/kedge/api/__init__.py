"""What users write and read: frozen types, one module per API group. CRDs are generated from them."""
