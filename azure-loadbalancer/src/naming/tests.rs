use proptest::prelude::*;

use super::*;

const UID: &str = "257b9655-5137-4ad2-b091-ef3f07043ad3";
const P: &str = "a257b965551374ad2b091ef3f07043ad";

#[test]
fn names_are_those_of_kubernetes_provider() {
    let p = prefix(UID);
    let table = [
        (p.clone(), P.to_owned()),
        (frontend(&p, None), P.to_owned()),
        (
            frontend(&p, Some("shortsubnet")),
            format!("{P}-shortsubnet"),
        ),
        // A4. A cut that ends in a hyphen ends in an underscore instead.
        (
            frontend(&p, Some(&format!("a{}z", "-".repeat(50)))),
            format!("{P}-a{}_", "-".repeat(40)),
        ),
        (rule(&p, None, "UDP", 53), format!("{P}-UDP-53")),
        // A5
        (
            rule(&p, Some("shortsubnet"), "TCP", 9000),
            format!("{P}-shortsubnet-TCP-9000"),
        ),
        // A7
        (public_ip("c", &p), format!("c-{P}")),
        (
            security_rule(&p, "TCP", 80, "10.0.0.0/8"),
            format!("{P}-TCP-80-10.0.0.0_8"),
        ),
        // A9
        (
            security_rule(SHARED, "TCP", 80, "Internet"),
            "shared-TCP-80-Internet".to_owned(),
        ),
        (load_balancer("c", None, false), "c".to_owned()),
        (load_balancer("c", None, true), "c-internal".to_owned()),
        (
            load_balancer("c", Some("as-1"), true),
            "as-1-internal".to_owned(),
        ),
        (
            deny_rule(Family::V4),
            "k8s-azure-lb_deny-all_IPv4".to_owned(),
        ),
    ];
    for (name, expected) in table {
        assert_eq!(name, expected);
    }
}

#[test]
fn aggregated_rules_have_the_known_hashes() {
    let rule = |family, protocol, sources: &[&str], ports: &[&str]| {
        let owned = |list: &[&str]| {
            list.iter()
                .map(|text| (*text).to_owned())
                .collect::<Vec<_>>()
        };
        aggregated_rule(family, protocol, &owned(sources), &owned(ports))
    };
    assert_eq!(
        rule(Family::V4, "Tcp", &["Internet"], &["80"]),
        "k8s-azure-lb_allow_IPv4_d39272f7f57ed937951650d93992ad77"
    );
    assert_eq!(
        rule(
            Family::V4,
            "Tcp",
            &["10.0.0.0/8", "192.168.0.0/16"],
            &["443", "80"]
        ),
        "k8s-azure-lb_allow_IPv4_aa523dfbe7b74c42cda57463a11c030c"
    );
    assert_eq!(
        rule(Family::V6, "Udp", &["Internet"], &["53"]),
        "k8s-azure-lb_allow_IPv6_eacf5e21d4ad7b5345009ad51af9d388"
    );
}

#[test]
fn names_that_others_made_are_read() {
    assert_eq!(owner_of(&format!("{}-TCP-80", P.to_uppercase())), P);
    assert_eq!(owner_of(P), P);
    assert!(is_prefix_of_uuid(P));
    assert!(!is_prefix_of_uuid("aweb"));
    assert!(!is_prefix_of_uuid(&format!("b{}", &P[1..])));
    assert!(is_internal("x-INTERNAL"));
    assert!(!is_internal("internal"));
    assert!(!is_internal("ü"));
}

#[test]
fn clusters_whose_names_cannot_begin_names_are_rejected() {
    for name in ["c", "testCluster", "a.b_c-d_", &"x".repeat(71)] {
        assert_eq!(check_cluster_name(name), Ok(()), "{name}");
    }
    for name in ["", "-c", "c-", "c/d", "cü", "c-internal", &"x".repeat(72)] {
        assert!(check_cluster_name(name).is_err(), "{name}");
    }
}

proptest! {
    #[test]
    fn names_fit_and_are_different_for_different_services(
        uids in proptest::collection::btree_set("[0-9a-f]{32}", 2),
        cluster in "[a-z][a-z0-9]{0,70}",
        subnet in proptest::option::of("[a-zA-Z0-9][a-zA-Z0-9._-]{0,79}"),
        source in "[A-Za-z0-9./]{1,60}",
        port in 1u16..,
    ) {
        let names = |uid: &str| {
            let p = prefix(uid);
            [
                frontend(&p, subnet.as_deref()),
                rule(&p, subnet.as_deref(), "TCP", port),
                rule(&p, subnet.as_deref(), "UDP", port),
                public_ip(&cluster, &p),
                security_rule(&p, "TCP", port, &source),
            ]
        };
        let all: Vec<_> = uids.iter().map(|uid| names(uid)).collect();
        for name in all.iter().flatten() {
            prop_assert!(name.len() <= LONGEST_NAME, "{name}");
        }
        // The prefix has 31 of the 32 digits, so UIDs that differ in the last only are the same to it.
        prop_assume!(all[0][0][..32] != all[1][0][..32]);
        for (one, other) in all[0].iter().zip(&all[1]) {
            prop_assert_ne!(one, other);
        }
        prop_assert_ne!(&all[0][1], &all[0][2]);
    }

    #[test]
    fn load_balancers_of_long_sets_differ(sets in proptest::collection::btree_set("[a-z]{70,80}", 2)) {
        let names: Vec<_> = sets.iter().map(|set| load_balancer("c", Some(set), true)).collect();
        prop_assert!(names.iter().all(|name| name.len() <= LONGEST_NAME && is_internal(name)));
        prop_assert_ne!(&names[0], &names[1]);
    }

    #[test]
    fn uids_made_of_keys_look_like_uuids(namespace in "[a-z]{1,9}", name in "[a-z-]{1,9}") {
        let key = ServiceKey::new(namespace, name);
        let uid = uid_of(&key, "c");
        prop_assert_eq!(uid.len(), 36);
        prop_assert_ne!(&uid, &uid_of(&key, "c2"));
        prop_assert!(is_prefix_of_uuid(&prefix(&uid)));
    }
}

#[test]
fn names_that_could_lead_elsewhere_are_none() {
    for good in ["a", "_a_", "a-b.c_d", "9", &"a".repeat(80)] {
        assert_eq!(check_resource_name(good), Ok(()), "{good}");
        assert_eq!(check_resource_group(good), Ok(()), "{good}");
    }
    assert_eq!(check_resource_group("Größe_(1)-x"), Ok(()));
    for bad in [
        "",
        ".",
        "..",
        "a/b",
        "..\\a",
        "%2e%2e",
        ".%2e",
        "a b",
        "a\tb",
        "a\n",
        "a?b",
        "a#b",
        "a.",
        &"a".repeat(91),
    ] {
        assert!(check_resource_name(bad).is_err(), "{bad:?}");
        assert!(check_resource_group(bad).is_err(), "{bad:?}");
    }
}
