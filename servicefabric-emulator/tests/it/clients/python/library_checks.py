"""Runs the checks with the Python library. `ENDPOINT` names the cluster, which is the one of `shop.toml`."""

from conformance.checks import finish
from conformance.library import Cluster
from library import checks
from library import (
    catalogue,
    cluster,
    replicas,
    deployed,
    health,
    properties,
    changes,
    upgrades,
)  # noqa: F401  in this order

if __name__ == "__main__":
    subject = Cluster.from_environment()
    subject.settle()
    failed = checks.run(subject)
    for operation in sorted(subject.called):
        print(f"called {operation}")
    finish(failed)
