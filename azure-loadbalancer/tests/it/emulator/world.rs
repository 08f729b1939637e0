//! A resource manager with a network, and helpers for requests.

use azure_loadbalancer::emulator::{EmulatorOptions, Machine};
use bytes::Bytes;
use http::{Request, Response};
use serde_json::{Value, json};

pub(crate) const NETWORK: &str = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network";
pub(crate) const COMPUTE: &str = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute";

/// Creates a group, a network with two subnets, and an empty security group.
pub(crate) fn world(options: EmulatorOptions) -> Machine {
    let mut machine = Machine::new(options);
    machine.add_group("s", "rg", "westus");
    let subnet = |name: &str, prefix: &str| json!({ "name": name, "properties": { "addressPrefix": prefix } });
    let subnets = [
        subnet("subnet", "10.0.0.0/24"),
        subnet("sub2", "10.0.1.0/29"),
    ];
    let network = json!({ "location": "westus", "properties": { "subnets": subnets } });
    machine
        .put(&format!("{NETWORK}/virtualNetworks/vnet"), network)
        .unwrap();
    let group = json!({ "location": "westus", "properties": {} });
    machine
        .put(&format!("{NETWORK}/networkSecurityGroups/nsg"), group)
        .unwrap();
    machine
}

/// Returns options with which writes complete immediately.
pub(crate) fn at_once() -> EmulatorOptions {
    EmulatorOptions::default().operation_requests(0)
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
    response: Response<Bytes>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    pub(crate) fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_default()
    }

    /// Checks that the request succeeded with this status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.body);
        self
    }

    /// Checks that the request was rejected with this status and code.
    #[track_caller]
    pub(crate) fn rejected(self, status: u16, code: &str) -> Self {
        assert_eq!((self.status, self.code()), (status, code), "{}", self.body);
        self
    }
}

/// Sends a request with the usual API version.
pub(crate) fn ask(machine: &mut Machine, method: &str, path: &str, body: Option<Value>) -> Answer {
    ask_with(machine, method, path, body, &[])
}

pub(crate) fn ask_with(
    machine: &mut Machine,
    method: &str,
    path: &str,
    body: Option<Value>,
    headers: &[(&str, &str)],
) -> Answer {
    let separator = if path.contains('?') { '&' } else { '?' };
    let uri = if path.contains("api-version") {
        path.to_owned()
    } else {
        format!("{path}{separator}api-version=2025-05-01")
    };
    let mut request = Request::builder()
        .method(method)
        .uri(uri)
        .header("host", "arm.test");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
    let response = machine
        .answer(&request.body(body).unwrap())
        .expect("no fault loses the answer");
    let body = match response.body() {
        empty if empty.is_empty() => Value::Null,
        body => serde_json::from_slice(body).unwrap(),
    };
    Answer {
        status: response.status().as_u16(),
        body,
        response,
    }
}

/// The path of a network resource.
pub(crate) fn network(kind: &str, name: &str) -> String {
    format!("{NETWORK}/{kind}/{name}")
}

pub(crate) fn public_ip(sku: &str) -> Value {
    json!({ "location": "westus", "sku": { "name": sku }, "properties": { "publicIPAllocationMethod": "Static" } })
}

/// A load balancer with these frontends: a name, and its address' id or its subnet's.
pub(crate) fn balancer(sku: &str, frontends: &[(&str, &str)]) -> Value {
    let frontends: Vec<_> = frontends
        .iter()
        .map(|(name, id)| {
            let field = if id.contains("/subnets/") {
                "subnet"
            } else {
                "publicIPAddress"
            };
            json!({ "name": name, "properties": { field: { "id": id } } })
        })
        .collect();
    json!({
        "location": "westus", "sku": { "name": sku },
        "properties": { "frontendIPConfigurations": frontends, "backendAddressPools": [{ "name": "pool" }] },
    })
}

/// A rule of the load balancer `lb`.
pub(crate) fn rule(name: &str, frontend: &str, port: u16) -> Value {
    let lb = network("loadBalancers", "lb");
    json!({ "name": name, "properties": {
        "frontendIPConfiguration": { "id": format!("{lb}/frontendIPConfigurations/{frontend}") },
        "backendAddressPool": { "id": format!("{lb}/backendAddressPools/pool") },
        "protocol": "Tcp", "frontendPort": port, "backendPort": port,
    } })
}

/// A load balancer `lb` with one public frontend `f` on the address `a`.
pub(crate) fn with_balancer(machine: &mut Machine) {
    machine
        .put(&network("publicIPAddresses", "a"), public_ip("Standard"))
        .unwrap();
    let body = balancer("Standard", &[("f", &network("publicIPAddresses", "a"))]);
    machine.put(&network("loadBalancers", "lb"), body).unwrap();
}
