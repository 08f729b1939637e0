"""What azure-mgmt-network finds after the reconciler has written. ENDPOINT says where, EXPECTED what it has told as JSON."""

import json
import os

from azure.core.credentials import AccessToken
from azure.core.pipeline.policies import SansIOHTTPPolicy
from azure.mgmt.network import NetworkManagementClient

EXPECTED = json.loads(os.environ["EXPECTED"])
GROUP = "rg"


class Credential:
    """Asked for by the client's constructor."""

    def get_token(self, *_, **__):
        return AccessToken("none", 4_102_444_800)


client = NetworkManagementClient(
    Credential(), "s", base_url=os.environ["ENDPOINT"], authentication_policy=SansIOHTTPPolicy(), retry_total=0
)


def last(reference):
    """In lower case: the emulator gives ids back in any, as Azure does."""
    return reference.id.rsplit("/", 1)[1].lower()


def external():
    assert sorted(one.name for one in client.load_balancers.list(GROUP)) == ["front", "front-internal"]
    balancer = client.load_balancers.get(GROUP, "front")
    assert (balancer.sku.name, balancer.provisioning_state) == ("Standard", "Succeeded")
    (frontend,) = balancer.frontend_ip_configurations
    (rule,) = balancer.load_balancing_rules
    assert (rule.protocol, rule.frontend_port, rule.backend_port) == ("Tcp", 80, 80)
    assert (rule.enable_floating_ip, rule.enable_tcp_reset) == (True, True)
    assert (rule.idle_timeout_in_minutes, rule.load_distribution) == (10, "SourceIP")
    assert last(rule.frontend_ip_configuration) == frontend.name.lower()
    (probe,) = balancer.probes
    assert last(rule.probe) == probe.name.lower() and (probe.protocol, probe.port) == ("Tcp", 30080)
    (pool,) = balancer.backend_address_pools
    assert last(rule.backend_address_pool) == pool.name == "front"
    assert [one.ip_address for one in pool.load_balancer_backend_addresses] == EXPECTED["nodes"]
    address = client.public_ip_addresses.get(GROUP, last(frontend.public_ip_address))
    assert address.ip_address == EXPECTED["web"]
    assert (address.sku.name, address.public_ip_allocation_method) == ("Standard", "Static")
    assert address.dns_settings.domain_name_label == "web"
    assert address.tags["k8s-azure-service"] == "shop/web"
    assert address.ip_configuration.id.lower() == frontend.id.lower()


def internal():
    balancer = client.load_balancers.get(GROUP, "front-internal")
    (frontend,) = balancer.frontend_ip_configurations
    assert frontend.private_ip_address == EXPECTED["db"]
    assert last(frontend.subnet) == "subnet"
    assert frontend.public_ip_address is None


def security():
    group = client.network_security_groups.get(GROUP, "nsg")
    (rule,) = group.security_rules
    assert (rule.access, rule.direction, rule.protocol, rule.priority) == ("Allow", "Inbound", "Tcp", 500)
    sources = rule.source_address_prefixes or [rule.source_address_prefix]
    assert sources == ["192.0.2.0/24"], sources
    destinations = rule.destination_address_prefixes or [rule.destination_address_prefix]
    assert destinations == [EXPECTED["web"]], destinations
    assert (rule.destination_port_ranges or [rule.destination_port_range]) == ["80"]


for check in [external, internal, security]:
    check()
    print(f"checked {check.__name__}")
