"""Decision trees grown from best splits."""
