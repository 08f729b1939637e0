//! A load balancer in front of gateways: an Envoy that checks their readiness.

use std::net::SocketAddr;

use testkit::peers::Peer;
use testkit::time::eventually;

use crate::fleet::programs::{Envoy, Gateway, at, free};

/// The load balancer of the page, for two gateways.
pub(crate) struct Balancer {
    program: Envoy,
    pub(crate) address: SocketAddr,
}

impl Balancer {
    /// Starts it, and waits until it considers both ready.
    pub(crate) async fn start(envoy: &Peer, gateways: [&Gateway; 2]) -> Self {
        let address = free();
        let checked = |address: &str, port: u16| {
            format!("{address}}}}}, health_check_config: {{port_value: {port}}}")
        };
        let written = ["21", "22"]
            .map(|host| checked(&format!("address: 10.0.0.{host}, port_value: 8080"), 9901));
        let meant = gateways.map(|gateway| checked(&at(gateway.address), gateway.admin.port()));
        let [first, second] = meant;
        let changes = [
            (written[0].as_str(), first),
            (written[1].as_str(), second),
            ("address: 0.0.0.0, port_value: 80", at(address)),
        ];
        let balancer = Self {
            program: Envoy::launch(envoy, "balancer.yaml", address, &changes).await,
            address,
        };
        balancer.until_all_are_asked().await;
        balancer
    }

    /// Waits until both gateways get requests.
    pub(crate) async fn until_all_are_asked(&self) {
        eventually("both gateways are asked", async || {
            let healthy = "cluster\\.gateways\\.membership_healthy";
            self.program.stat(healthy).await == Some(2)
        })
        .await;
    }
}
