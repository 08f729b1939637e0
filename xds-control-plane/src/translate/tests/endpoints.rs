use std::sync::Arc;

use proptest::prelude::*;

use super::world::World;
use crate::assemble::{ResourceOptions, assemble};

fn of(instances: &[&str]) -> World {
    let world = World::new().registry("[{name: a, provides: [{name: http}]}]");
    instances.iter().fold(world, |world, instance| {
        world.live(&format!("a-http@{instance}"), &[])
    })
}

/// Cases E01 to E16: the own datacenter first, and all others together.
#[test]
fn endpoints_are_grouped_by_datacenter() {
    let cases: &[(&[&str], &[&str], &[&str])] = &[
        (&["sas=10.0.0.1:80"], &["sas P0 10.0.0.1:80"], &[]),
        (
            &["sas=10.0.0.1:80", "vla=10.0.1.1:80"],
            &["sas P0 10.0.0.1:80", "vla P1 10.0.1.1:80"],
            &[],
        ),
        (&["vla=10.0.1.1:80"], &["vla P0 10.0.1.1:80"], &[]),
        (
            &["vla=10.0.1.1:80", "iva=10.0.2.1:80", "sas=10.0.0.1:80"],
            &[
                "sas P0 10.0.0.1:80",
                "iva P1 10.0.2.1:80",
                "vla P1 10.0.1.1:80",
            ],
            &[],
        ),
        (
            &["vla=10.0.1.1:80", "iva=10.0.2.1:80"],
            &["iva P0 10.0.2.1:80", "vla P0 10.0.1.1:80"],
            &[],
        ),
        (&["sas=2a02:6b8::1:80"], &["sas P0 2a02:6b8::1:80"], &[]),
        (
            &["sas=10.0.0.1:0", "vla=10.0.1.1:80"],
            &["vla P0 10.0.1.1:80"],
            &["no_port"],
        ),
        (&["sas=host.example:80"], &[], &["no_ip_address"]),
        (
            &["sas=0.0.0.0:80", "sas=:::80"],
            &[],
            &["no_ip_address", "no_ip_address"],
        ),
        (
            &["sas=10.0.0.1:80", "sas=10.0.0.1:80"],
            &["sas P0 10.0.0.1:80"],
            &[],
        ),
        (
            &["sas=10.0.0.2:80", "sas=10.0.0.1:81", "sas=10.0.0.1:80"],
            &["sas P0 10.0.0.1:80 10.0.0.1:81 10.0.0.2:80"],
            &[],
        ),
        (
            &["sas=10.0.0.1:80", "vla=10.0.0.1:80"],
            &["sas P0 10.0.0.1:80"],
            &[],
        ),
        (&[], &[], &[]),
    ];
    for (instances, expected, codes) in cases {
        let served = of(instances).translate();
        assert_eq!(served.endpoints("a-http"), *expected, "{instances:?}");
        assert_eq!(served.codes(), *codes, "{instances:?}");
    }
}

#[test]
fn who_is_not_live_is_not_served() {
    let served = of(&["vla=10.0.1.1:80"])
        .dead("a-http@sas=10.0.0.1:80", &[])
        .translate();
    assert_eq!(served.endpoints("a-http"), ["vla P0 10.0.1.1:80"]);
}

/// Case E18.
#[test]
fn priorities_are_those_of_who_is_asked() {
    let mut world = of(&["sas=10.0.0.1:80", "vla=10.0.1.1:80"]);
    Arc::make_mut(&mut world.known.catalog).own = "vla".into();
    assert_eq!(
        world.translate().endpoints("a-http"),
        ["vla P0 10.0.1.1:80", "sas P1 10.0.0.1:80"]
    );
}

proptest! {
    /// Case E17: the same instances have the same bytes, in any order.
    #[test]
    fn the_order_of_instances_does_not_matter(
        instances in prop::collection::vec((0_usize..3, 0_u8..20, 1_u16..4), 0..12),
        seed in any::<u64>(),
    ) {
        let text = |(zone, host, port): &(usize, u8, u16)| {
            format!("{}=10.0.{zone}.{host}:{port}", ["sas", "vla", "iva"][*zone])
        };
        let one: Vec<_> = instances.iter().map(text).collect();
        let mut other = one.clone();
        fastrand::Rng::with_seed(seed).shuffle(&mut other);
        let snapshot = |texts: &[String]| {
            let texts: Vec<_> = texts.iter().map(String::as_str).collect();
            let services = of(&texts).translate().translation.services;
            assemble(&services, ResourceOptions::default()).snapshot
        };
        prop_assert_eq!(snapshot(&one), snapshot(&other));
    }
}
