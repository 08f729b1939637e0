"""Checks with the Python library `azure-servicefabric`, against the cluster of `shop.toml`."""

from conformance.checks import Checks

checks = Checks()
