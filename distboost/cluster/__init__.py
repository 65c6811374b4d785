"""Clusters that this library starts itself: processes of this machine, and certificates for any cluster."""
