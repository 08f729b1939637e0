//! What happens to the demo's services over a minute, again and again.

use std::io;
use std::time::Duration;

use indexmap::IndexMap;

use super::instance::Instance;
use super::registry::{Registry, Service};

/// How long one telling of the story takes at normal speed.
pub(super) const LENGTH: Duration = Duration::from_secs(62);

/// How often the services are probed at normal speed.
pub(super) const PROBE_EVERY: Duration = Duration::from_secs(1);

/// The services as the story begins, probed so often.
pub(super) async fn begin(registry: &Registry, probe_every: Duration) -> io::Result<()> {
    let labels = |own: &[(&str, &str)]| labels(probe_every, own);
    let catalog = Service {
        labels: labels(&[
            ("routes.catalog.path", "/catalog/{**rest}"),
            ("cluster.loadBalancingPolicy", "RoundRobin"),
        ]),
        instances: vec![
            Instance::start("catalog", "1.4", "catalog-1").await?,
            Instance::start("catalog", "1.4", "catalog-2").await?,
        ],
    };
    let orders = Service {
        labels: labels(&[
            ("routes.orders.path", "/orders/{id?}"),
            ("routes.orders.methods", "GET,POST"),
        ]),
        instances: vec![
            Instance::start("orders", "2.0", "orders-1").await?,
            Instance::start("orders", "2.0", "orders-2").await?,
        ],
    };
    let web = Service {
        labels: labels(&[("routes.web.path", "/{page?}")]),
        instances: vec![Instance::start("web", "7", "web-1").await?],
    };
    registry.update(|services| {
        services.insert("catalog", catalog);
        services.insert("orders", orders);
        services.insert("web", web);
    });
    Ok(())
}

/// One thing that happens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// When, from the beginning of the story.
    pub(super) at: Duration,
    /// What, for the person at the terminal.
    pub(super) says: &'static str,
    act: Act,
}

#[derive(Clone, Copy, Debug)]
enum Act {
    CatalogGrows,
    OrdersFallsIll,
    OrdersRecovers,
    PaymentsJoins,
    PaymentsMislabelled,
    PaymentsMended,
    PaymentsLeaves,
    CatalogShrinks,
}

/// Everything that happens, in order.
pub(super) const STEPS: [Step; 8] = [
    step(8, "a third instance of catalog starts", Act::CatalogGrows),
    step(
        16,
        "orders-2 falls ill: its health probes answer 503",
        Act::OrdersFallsIll,
    ),
    step(28, "orders-2 recovers", Act::OrdersRecovers),
    step(
        34,
        "a new service joins: payments, at /payments",
        Act::PaymentsJoins,
    ),
    step(
        42,
        "somebody gives payments a bad label: it keeps serving as before, and the problem is named",
        Act::PaymentsMislabelled,
    ),
    step(50, "the label is mended", Act::PaymentsMended),
    step(56, "payments leaves", Act::PaymentsLeaves),
    step(
        60,
        "the third instance of catalog stops",
        Act::CatalogShrinks,
    ),
];

const fn step(at: u64, says: &'static str, act: Act) -> Step {
    Step {
        at: Duration::from_secs(at),
        says,
        act,
    }
}

impl Step {
    /// Lets it happen.
    pub(super) async fn act(self, registry: &Registry, probe_every: Duration) -> io::Result<()> {
        let payments_labels = |own: &[(&str, &str)]| {
            let route = ("routes.payments.path", "/payments/{**rest}");
            labels(probe_every, &[&[route], own].concat())
        };
        match self.act {
            Act::CatalogGrows => {
                let third = Instance::start("catalog", "1.4", "catalog-3").await?;
                registry.update(|services| services["catalog"].instances.push(third));
            }
            Act::OrdersFallsIll => set_healthy(registry, "orders-2", false),
            Act::OrdersRecovers => set_healthy(registry, "orders-2", true),
            Act::PaymentsJoins => {
                let payments = Service {
                    labels: payments_labels(&[]),
                    instances: vec![
                        Instance::start("payments", "0.9", "payments-1").await?,
                        Instance::start("payments", "0.9", "payments-2").await?,
                    ],
                };
                registry.update(|services| services.insert("payments", payments));
            }
            Act::PaymentsMislabelled => {
                let bad = payments_labels(&[("cluster.healthCheck.active.timeout", "soon")]);
                registry.update(|services| services["payments"].labels = bad);
            }
            Act::PaymentsMended => {
                let good = payments_labels(&[]);
                registry.update(|services| services["payments"].labels = good);
            }
            Act::PaymentsLeaves => {
                registry.update(|services| services.shift_remove("payments"));
            }
            Act::CatalogShrinks => {
                registry.update(|services| services["catalog"].instances.truncate(2));
            }
        }
        Ok(())
    }
}

fn set_healthy(registry: &Registry, instance: &str, healthy: bool) {
    registry.update(|services| {
        let mut instances = services.values().flat_map(|service| &service.instances);
        if let Some(instance) = instances.find(|candidate| candidate.name() == instance) {
            instance.set_healthy(healthy);
        }
    });
}

/// A service's own labels beside those that all services of the demo have.
fn labels(probe_every: Duration, own: &[(&str, &str)]) -> IndexMap<String, String> {
    let interval = format!("{}ms", probe_every.as_millis());
    let common = [
        ("enable", "true"),
        ("cluster.healthCheck.active.enabled", "true"),
        ("cluster.healthCheck.active.interval", &interval),
        ("cluster.healthCheck.active.timeout", "1s"),
        ("cluster.healthCheck.active.path", "/health"),
    ];
    let all = common.iter().chain(own);
    all.map(|(key, value)| (format!("proxy.{key}"), (*value).to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_in_order_and_end_before_the_story_does() {
        assert!(STEPS.windows(2).all(|pair| pair[0].at < pair[1].at));
        assert!(STEPS.iter().all(|step| step.at < LENGTH));
    }

    #[tokio::test]
    async fn every_step_can_happen_twice_over() {
        let registry = Registry::default();
        begin(&registry, PROBE_EVERY).await.unwrap();
        for _ in 0..2 {
            for step in STEPS {
                step.act(&registry, PROBE_EVERY).await.unwrap();
            }
        }
        let names = registry.update(|services| services.keys().copied().collect::<Vec<_>>());
        assert_eq!(names, ["catalog", "orders", "web"]);
    }
}
