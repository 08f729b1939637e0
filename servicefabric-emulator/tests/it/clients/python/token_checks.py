"""The Python library with bearer tokens. `ENDPOINT` names a cluster that wants one: `admin` or `reader`."""

import os

from azure.servicefabric import models

from conformance.checks import Checks, expect_equal, expect_fields, finish
from conformance.library import Certificates, Cluster

checks = Checks()


def library(token):
    """The library with a token, or without one."""
    return Cluster(os.environ["ENDPOINT"], Certificates(token=token))


@checks("tokens: what each of them may")
def roles(_):
    told = models.HealthInformation(source_id="Operator", property="Mood", health_state="Ok")
    for token, query, change in (("admin", 200, 200), ("reader", 200, 403), ("guessed", 401, 401), (None, 401, 401)):
        cluster = library(token)
        expect_equal(cluster.status_of("get_node_info_list"), query, f"a query with the token {token}")
        expect_equal(cluster.status_of("report_cluster_health", told), change, f"a report with the token {token}")


@checks("tokens: where to get one is told to everybody")
def metadata(_):
    found = library(None).get_aad_metadata()
    expect_equal(found.type, "aad", "type")
    expect_fields(
        found.metadata,
        {
            "authority": "https://login.example/tenant",
            "client": "client-id",
            "cluster": "cluster-id",
            "login": "https://login.example",
            "redirect": "urn:redirect",
            "tenant": "tenant",
        },
        "metadata",
    )


if __name__ == "__main__":
    finish(checks.run(None))
