"""Both clients with certificates, against the cluster of `shop.toml` over TLS.

`ENDPOINT` names the cluster, `AUTHORITY` who vouches for it, and `REQUESTS_CA_BUNDLE` says the same to the program.
`ADMIN`, `READER` and `STRANGER` are directories with `certificate.pem`, `key.pem` and `both.pem` of a client that may
do everything, one that may only look, and a stranger.
"""

import os

from azure.servicefabric import models

from conformance.checks import Checks, expect, expect_equal, finish
from conformance.library import Certificates, Cluster
from conformance.program import Program, arguments

checks = Checks()

ENDPOINT = os.environ["ENDPOINT"]
AUTHORITY = os.environ["AUTHORITY"]
REPORT = {"source_id": "Operator", "health_property": "Mood", "health_state": "Ok", "immediate": True}


def files(who):
    """Certificate and key of a client."""
    return os.path.join(os.environ[who], "certificate.pem"), os.path.join(os.environ[who], "key.pem")


def library(who=None):
    """The library as one of the clients."""
    return Cluster(ENDPOINT, Certificates(client=files(who) if who else None, authority=AUTHORITY))


def report():
    """A report about health."""
    return models.HealthInformation(source_id="Operator", property="Mood", health_state="Ok")


def select(sfctl, who=None):
    """Selects the cluster as one of the clients."""
    chosen = ("--cert", files(who)[0], "--key", files(who)[1]) if who else ()
    return sfctl.alone("cluster", "select", "--endpoint", ENDPOINT, *chosen)


@checks("sfctl: one file with certificate and key")
def pem(sfctl):
    both = os.path.join(os.environ["ADMIN"], "both.pem")
    code, _, errors = sfctl.alone("cluster", "select", "--endpoint", ENDPOINT, "--pem", both)
    expect_equal((code, errors), (0, ""), "selection")
    expect_equal(len(sfctl("node list")["items"]), 5, "nodes")
    sfctl("service report-health", service_id="Shop~Web", **REPORT)


@checks("sfctl: certificate and key")
def certificate(sfctl):
    code, _, errors = select(sfctl, "ADMIN")
    expect_equal((code, errors), (0, ""), "selection")
    expect_equal(sfctl("application info", application_id="Shop")["name"], "fabric:/Shop", "name")


@checks("sfctl: without a certificate, with a strange one, and with one that may only look")
def refused(sfctl):
    code, _, errors = select(sfctl)
    expect_equal(code, 1, "exit code without a certificate")
    expect("403 Client Error: Client certificate required" in errors, errors)
    code, _, errors = select(sfctl, "STRANGER")
    expect_equal(code, 1, "exit code with a strange certificate")
    expect("403 Client Error" in errors, errors)
    code, _, errors = select(sfctl, "READER")
    expect_equal((code, errors), (0, ""), "selection by one that may only look")
    expect_equal(len(sfctl("node list")["items"]), 5, "nodes")
    code, _, errors = sfctl.run(*arguments("service report-health", {"service_id": "Shop~Web", **REPORT}))
    expect_equal(code, 1, f"exit code of a report by one that may only look ({errors})")


@checks("library: what each of the clients may")
def roles(_):
    for who, query, change in (("ADMIN", 200, 200), ("READER", 200, 403), ("STRANGER", 403, 403), (None, 403, 403)):
        cluster = library(who)
        expect_equal(cluster.status_of("get_node_info_list"), query, f"a query of {who}")
        expect_equal(cluster.status_of("report_service_health", "Shop~Web", report()), change, f"a report of {who}")
        policy = models.ApplicationHealthPolicy(consider_warning_as_error=True)
        asked = cluster.status_of("get_service_health_using_policy", "Shop~Web", application_health_policy=policy)
        expect_equal(asked, query, f"a query of {who} that is a POST")


if __name__ == "__main__":
    finish(checks.run(Program.from_environment()))
