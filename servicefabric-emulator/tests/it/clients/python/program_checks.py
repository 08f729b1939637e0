"""Runs the checks with the command line.

`ENDPOINT` names the cluster, which is the one of `shop.toml`; `SFCTL` the program.
"""

from conformance.checks import finish
from conformance.program import Program
from program import checks
from program import cluster, application, service, partition, store, absent  # noqa: F401  in this order

if __name__ == "__main__":
    subject = Program.from_environment()
    subject.settle()
    failed = checks.run(subject)
    for command in sorted(subject.called):
        print(f"called {command}")
    finish(failed)
