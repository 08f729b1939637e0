//! Random services and faults.

use std::time::Duration;

use azure_loadbalancer::emulator::{Fault, FaultAction};
use azure_loadbalancer::node::Readiness;
use azure_loadbalancer::{Node, Service};
use http::Method;
use proptest::prelude::*;

use crate::execute::world::{USER_IP, annotated, elsewhere, internal, node, service};

/// A generated service.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    number: u8,
    ports: Vec<u16>,
    internal: bool,
    subnet: bool,
    ranges: Vec<String>,
    affinity: bool,
    local: bool,
    pinned: bool,
    label: bool,
    elsewhere: bool,
    flat: bool,
}

impl Wish {
    pub(crate) fn service(&self) -> Service {
        let mut made = service(&format!("svc{}", self.number), &self.ports);
        for port in &mut made.ports {
            // Two services without a floating address would clash, and the result would depend on their
            // order.
            port.node_port = Some(20_000 + 10_000 * u16::from(self.number) + port.port);
        }
        made.source_ranges.clone_from(&self.ranges);
        made.client_affinity = self.affinity;
        made.local_traffic_only = self.local;
        made.health_check_node_port = self.local.then_some(32_000 + u16::from(self.number));
        if self.flat {
            made = annotated(made, "azure-disable-load-balancer-floating-ip", "true");
        }
        if self.internal {
            made = internal(made);
            if self.subnet {
                made = annotated(made, "azure-load-balancer-internal-subnet", "sub2");
            }
        } else if self.pinned {
            made.load_balancer_ip = Some(USER_IP.to_owned());
        } else {
            if self.label {
                let label = format!("label{}", self.number);
                made = annotated(made, "azure-dns-label-name", &label);
            }
            if self.elsewhere {
                made = elsewhere(made);
            }
        }
        made
    }
}

fn wish(number: u8) -> impl Strategy<Value = Wish> {
    let ports = proptest::sample::subsequence(vec![80, 443, 5_432, 8_080], 1..=3);
    let ranges = proptest::sample::subsequence(
        vec!["10.0.0.0/8".to_owned(), "192.168.0.0/16".to_owned()],
        0..=2,
    );
    let flags = proptest::array::uniform8(any::<bool>());
    (ports, ranges, flags).prop_map(
        move |(
            ports,
            ranges,
            [
                internal,
                subnet,
                affinity,
                local,
                pinned,
                label,
                elsewhere,
                flat,
            ],
        )| {
            Wish {
                number,
                ports,
                internal,
                subnet,
                ranges,
                affinity,
                local,
                // Only one of them can have the user's address for the same port.
                pinned: pinned && number == 0,
                label,
                elsewhere,
                flat,
            }
        },
    )
}

/// Some of four services, each as it likes.
pub(crate) fn services() -> impl Strategy<Value = Vec<Service>> {
    let each = (0..4)
        .map(|number| proptest::option::weighted(0.7, wish(number)))
        .collect::<Vec<_>>();
    each.prop_map(|wishes| wishes.iter().flatten().map(Wish::service).collect())
}

/// Some of five nodes, most of them ready and at their own addresses.
pub(crate) fn node_sets() -> impl Strategy<Value = Vec<Node>> {
    let each = |number: u8| {
        let address = prop_oneof![5 => Just(number), 1 => 1..=5_u8];
        let is_ready = proptest::bool::weighted(0.85);
        let told = (address, is_ready).prop_map(move |(last, is_ready)| Node {
            readiness: if is_ready {
                Readiness::Ready
            } else {
                Readiness::NotReady(Duration::from_secs(3_600))
            },
            ..node(number, last)
        });
        proptest::option::weighted(0.6, told)
    };
    let each = (1..=5).map(each).collect::<Vec<_>>();
    each.prop_map(|nodes| nodes.into_iter().flatten().collect())
}

/// Faults that a later reconciliation overcomes.
pub(crate) fn faults() -> impl Strategy<Value = Vec<Fault>> {
    let answer = |status, code: &str| FaultAction::Answer {
        status,
        code: code.to_owned(),
        retry_after: None,
    };
    let action = prop_oneof![
        Just(answer(500, "InternalServerError")),
        Just(answer(429, "TooManyRequests")),
        Just(answer(409, "AnotherOperationInProgress")),
        Just(FaultAction::LoseRequest),
        Just(FaultAction::LoseAnswer),
        Just(FaultAction::Interfere),
        any::<bool>().prop_map(|canceled| FaultAction::FailOperation {
            code: "InternalServerError".to_owned(),
            canceled
        }),
    ];
    let method = proptest::sample::select(vec![Method::GET, Method::PUT, Method::DELETE]);
    let fault = (action, method, 0..6_u32, 1..3_u32).prop_map(|(action, method, skip, times)| {
        Fault::new(action).method(&method).skip(skip).times(times)
    });
    proptest::collection::vec(fault, 0..4)
}
