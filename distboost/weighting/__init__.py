"""How a row's weight follows from its scores, and what is summed from it: small values that travel to the workers."""
