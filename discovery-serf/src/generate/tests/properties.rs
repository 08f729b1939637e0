//! Properties of every cluster.

use std::collections::HashSet;

use proptest::prelude::*;
use proptest::sample::select;

use super::*;

fn any_key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        12 => select(vec![
            "service", "http-port", "scheme", "host", "route-path", "health-path", "weight", "version", "region",
            "instance",
        ])
        .prop_map(|key| key.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ]
}

fn any_value() -> impl Strategy<Value = Vec<u8>> {
    let text = prop_oneof![
        6 => select(vec![
            "orders", "Orders", "web", "web@version=v1", "80", "5000", " 81 ", "65536", "http", "https", "ftp", "a.local",
            "A.local", "*", "*.a.local", "a b", "/x/{**a}", "/x/{**b}", "/{**c}", "/{", "/{id:int}", "~/x", "/a/{a:regex(x)}",
            "0", "3", "1000", "1001", "-1", "v1", "V1", "v1,region=eu", "eu", "x", "X", "x@10.0.0.1:80", "x#0",
            "10.0.0.2:80", "", " ",
        ])
        .prop_map(str::to_owned),
        2 => "[/{}a-c*:.?]{0,12}",
        1 => ".{0,20}",
    ];
    prop_oneof![
        10 => text.prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..500),
        1 => Just(vec![b'x'; 600]),
    ]
}

fn any_member() -> impl Strategy<Value = Member> {
    let address = prop_oneof![
        4 => select(vec![
            "10.0.0.1", "10.0.0.2", "10.0.0.3", "fd00::1", "fe80::1", "0.0.0.0", "::ffff:10.0.0.1", "::1",
        ])
        .prop_map(|text| text.parse().ok()),
        1 => Just(None),
        1 => any::<u32>().prop_map(|bits| Some(std::net::Ipv4Addr::from(bits).into())),
        1 => any::<u128>().prop_map(|bits| Some(std::net::Ipv6Addr::from(bits).into())),
    ];
    let status = select(vec![
        "alive", "alive", "alive", "alive", "failed", "left", "leaving", "\n",
    ]);
    let tags = prop::collection::vec((any_key(), any_value()), 0..8);
    let name = prop_oneof![5 => "n[0-9]", 1 => ".{0,8}"];
    // Most are on the way to being an instance.
    let started = prop_oneof![3 => Just(true), 1 => Just(false)];
    (name, address, status, tags, started).prop_map(|(name, address, status, tags, started)| {
        let mut all = Tags::new();
        if started {
            all.insert("service", "web");
            all.insert("http-port", "80");
        }
        for (key, value) in tags {
            all.insert(key, value);
        }
        let mut member = Member::new(name, [10, 0, 0, 1].into(), all);
        member.address = address;
        member.with_status(MemberStatus::parse(status))
    })
}

fn any_options() -> impl Strategy<Value = (CatalogOptions, GenerateOptions)> {
    (
        any::<[bool; 6]>(),
        select(vec!["X-Version", "x-region", "X Y", ""]),
    )
        .prop_map(
            |([keep, legacy, duplicate, versions, regions, allowed], header)| {
                let mut catalog = CatalogOptions::default()
                    .with_keep_empty_services(keep)
                    .with_legacy_backend(legacy);
                if allowed {
                    catalog = catalog.with_allowed_services(["web", "orders"]);
                }
                let mut generate = GenerateOptions::default();
                if duplicate {
                    generate = generate.with_weights(WeightStrategy::Duplicate);
                }
                if versions {
                    generate = generate.with_version_header(header);
                }
                if regions {
                    generate = generate.with_region_header("X-Region");
                }
                (catalog, generate)
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn row_66_whatever_members_say(
        (members, turned) in prop::collection::vec(any_member(), 0..12)
            .prop_flat_map(|members| (Just(members.clone()), Just(members).prop_shuffle())),
        (catalog_options, options) in any_options(),
    ) {
        let catalog = ServiceCatalog::build(&members, &catalog_options);
        let discovery = discovery_of(&catalog, &options);

        // The order makes no difference, to the byte.
        let again = ServiceCatalog::build(&turned, &catalog_options);
        prop_assert_eq!(format!("{catalog:?}"), format!("{again:?}"));
        prop_assert_eq!(format!("{discovery:?}"), format!("{:?}", discovery_of(&again, &options)));

        // It compiles, alone and together, and no id is used twice, which `whole` checks.
        let config = whole(&discovery);
        for (id, route) in &config.routes {
            let cluster = route.cluster_id.as_ref().expect("each has one");
            prop_assert!(config.clusters.contains_key(cluster), "{} of {}", cluster, id);
        }
        let names: HashSet<_> = discovery.services.iter().map(|service| &service.name).collect();
        prop_assert_eq!(names.len(), discovery.services.len());

        // Nothing that is found in tags keeps a service from being served.
        for problem in discovery.services.iter().flat_map(|s| &s.problems).chain(&discovery.problems) {
            prop_assert_eq!(problem.severity, Severity::Warning);
            prop_assert!(!problem.message.contains(char::is_control), "{:?}", problem);
            prop_assert!(problem.message.len() < 2_000, "{}", problem);
        }

        // Every member is a destination, or the reason is reported.
        let instances: usize = catalog.services.values().chain(&catalog.legacy).map(|s| s.instances.len()).sum();
        prop_assert_eq!(instances + catalog.left_out.len(), members.len());
        let in_plain = |id: &ClusterId| !id.as_str().contains("@version=") && !id.as_str().contains("@region=");
        if options.weights == WeightStrategy::Weighted {
            let plain = config.clusters.iter().filter(|(id, _)| in_plain(id));
            let destinations: usize = plain.map(|(_, cluster)| cluster.destinations.len()).sum();
            prop_assert!(destinations <= members.len());
        }
        let all: usize = config.clusters.values().map(|c| c.destinations.len()).sum();
        let most = match options.weights {
            WeightStrategy::Weighted => 4 * members.len(),
            WeightStrategy::Duplicate => config.clusters.len() * (1_000 + members.len()),
        };
        prop_assert!(all <= most, "{all} of {most}");
    }
}
