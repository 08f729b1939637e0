"""What azure-mgmt-network can do with the emulator. ENDPOINT says where that is."""

import os

from azure.core.credentials import AccessToken
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.core.pipeline.policies import SansIOHTTPPolicy
from azure.mgmt.network import NetworkManagementClient

ENDPOINT = os.environ["ENDPOINT"]
SUBSCRIPTION = "s"
GROUP = "rg"


class Credential:
    """Asked for by the client's constructor; the policy below is what sends a token."""

    def get_token(self, *_, **__):
        return AccessToken("emulated-token", 4_102_444_800)


class BearerOverHttp(SansIOHTTPPolicy):
    """The client's own policy refuses to send tokens over plain HTTP, even to this machine."""

    def on_request(self, request):
        request.http_request.headers["Authorization"] = "Bearer emulated-token"


client = NetworkManagementClient(
    Credential(),
    SUBSCRIPTION,
    base_url=ENDPOINT,
    authentication_policy=BearerOverHttp(),
    polling_interval=0,
    retry_total=0,
)


def refused(call, status, code):
    try:
        call()
    except HttpResponseError as error:
        assert error.status_code == status, (error.status_code, status, error)
        assert error.error.code == code, (error.error.code, code)
        return error
    raise AssertionError(f"{code} was expected, and nothing was refused")


def path(kind, name):
    return f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.Network/{kind}/{name}"


def public_ip(name):
    body = {"location": "westus", "sku": {"name": "Standard"}, "properties": {"publicIPAllocationMethod": "Static"}}
    return client.public_ip_addresses.begin_create_or_update(GROUP, name, body).result()


def load_balancer(**properties):
    lb = path("loadBalancers", "lb")
    return {
        "location": "westus",
        "sku": {"name": "Standard"},
        "properties": {
            "frontendIPConfigurations": [
                {"name": "front", "properties": {"publicIPAddress": {"id": path("publicIPAddresses", "a")}}}
            ],
            "backendAddressPools": [{"name": "pool"}],
            "probes": [{"name": "probe", "properties": {"protocol": "Tcp", "port": 8080}}],
            "loadBalancingRules": [
                {
                    "name": "rule",
                    "properties": {
                        "protocol": "Tcp",
                        "frontendPort": 80,
                        "backendPort": 80,
                        "frontendIPConfiguration": {"id": f"{lb}/frontendIPConfigurations/front"},
                        "backendAddressPool": {"id": f"{lb}/backendAddressPools/pool"},
                        "probe": {"id": f"{lb}/probes/probe"},
                    },
                }
            ],
            **properties,
        },
    }


def put_load_balancer(body, **arguments):
    return client.load_balancers.begin_create_or_update(GROUP, "lb", body, **arguments).result()


def public_addresses():
    address = public_ip("a")
    assert address.ip_address == "20.0.0.1", address.ip_address
    assert address.provisioning_state == "Succeeded"
    assert public_ip("a").ip_address == "20.0.0.1", "it stays when it is written again"
    public_ip("b")
    assert [one.name for one in client.public_ip_addresses.list(GROUP)] == ["a", "b"]
    assert [one.name for one in client.public_ip_addresses.list_all()] == ["a", "b"]
    tagged = client.public_ip_addresses.update_tags(GROUP, "b", {"tags": {"service": "default/web"}})
    assert tagged.tags == {"service": "default/web"}
    try:
        client.public_ip_addresses.get(GROUP, "nope")
        raise AssertionError("it is not there")
    except ResourceNotFoundError as error:
        assert error.error.code == "ResourceNotFound"


def load_balancers():
    balancer = put_load_balancer(load_balancer())
    rule = balancer.load_balancing_rules[0]
    assert (rule.frontend_port, rule.idle_timeout_in_minutes, rule.load_distribution) == (80, 4, "Default")
    assert balancer.frontend_ip_configurations[0].load_balancing_rules[0].id.lower() == rule.id.lower()
    assert client.public_ip_addresses.get(GROUP, "a").ip_configuration.id.lower().endswith("/front")
    names = [one.name for one in client.load_balancer_load_balancing_rules.list(GROUP, "lb")]
    assert names == ["rule"], names
    assert client.load_balancer_probes.get(GROUP, "lb", "probe").port == 8080
    assert [one.name for one in client.load_balancers.list(GROUP)] == ["lb"]


def etags():
    etag = client.load_balancers.get(GROUP, "lb").etag
    assert etag.startswith('W/"')
    good = put_load_balancer(load_balancer(), headers={"If-Match": etag})
    assert good.etag != etag
    error = refused(lambda: put_load_balancer(load_balancer(), headers={"If-Match": etag}), 412, "PreconditionFailed")
    assert error.error.details[0].code == "PreconditionFailedEtagMismatch"


def pools():
    network = client.virtual_networks.begin_create_or_update(
        GROUP,
        "vnet",
        {"location": "westus", "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}}},
    ).result()
    subnet = client.subnets.begin_create_or_update(
        GROUP, "vnet", "subnet", {"properties": {"addressPrefix": "10.0.0.0/24"}}
    ).result()
    pool = client.load_balancer_backend_address_pools.begin_create_or_update(
        GROUP,
        "lb",
        "pool",
        {
            "properties": {
                "virtualNetwork": {"id": network.id},
                "loadBalancerBackendAddresses": [{"name": "n1", "properties": {"ipAddress": "10.0.0.4"}}],
            }
        },
    ).result()
    assert pool.load_balancer_backend_addresses[0].ip_address == "10.0.0.4"
    interface = client.network_interfaces.begin_create_or_update(
        GROUP,
        "nic",
        {
            "location": "westus",
            "properties": {"ipConfigurations": [{"name": "c", "properties": {"subnet": {"id": subnet.id}}}]},
        },
    ).result()
    assert interface.ip_configurations[0].private_ip_address == "10.0.0.4"


def security_groups():
    rule = {
        "name": "web",
        "properties": {
            "protocol": "Tcp",
            "access": "Allow",
            "direction": "Inbound",
            "priority": 500,
            "sourcePortRange": "*",
            "destinationPortRange": "80",
            "sourceAddressPrefix": "Internet",
            "destinationAddressPrefix": "20.0.0.1",
        },
    }
    body = {"location": "westus", "properties": {"securityRules": [rule]}}
    group = client.network_security_groups.begin_create_or_update(GROUP, "nsg", body).result()
    assert (len(group.security_rules), len(group.default_security_rules)) == (1, 6)
    again = {**rule, "name": "again"}
    body["properties"]["securityRules"].append(again)
    refused(
        lambda: client.network_security_groups.begin_create_or_update(GROUP, "nsg", body).result(),
        400,
        "SecurityRuleConflict",
    )
    other = {**rule["properties"], "priority": 501}
    client.security_rules.begin_create_or_update(GROUP, "nsg", "other", {"properties": other}).result()
    assert [one.name for one in client.security_rules.list(GROUP, "nsg")] == ["web", "other"]
    client.security_rules.begin_delete(GROUP, "nsg", "other").result()


def deletions():
    refused(
        lambda: client.public_ip_addresses.begin_delete(GROUP, "a").result(), 400, "PublicIPAddressCannotBeDeleted"
    )
    client.load_balancers.begin_delete(GROUP, "lb").result()
    client.public_ip_addresses.begin_delete(GROUP, "a").result()
    client.public_ip_addresses.begin_delete(GROUP, "a").result()
    try:
        client.load_balancers.get(GROUP, "lb")
        raise AssertionError("it is gone")
    except ResourceNotFoundError:
        pass


for check in [public_addresses, load_balancers, etags, pools, security_groups, deletions]:
    check()
    print(f"checked {check.__name__}")
