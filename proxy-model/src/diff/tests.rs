use super::*;

fn config(text: &str) -> ProxyConfig {
    ProxyConfig::from_json(text).unwrap()
}

const OLD: &str = r#"{
    "Routes": {
        "a": { "ClusterId": "orders", "Match": { "Path": "/a" } },
        "b": { "Match": { "Path": "/b" }, "Order": 1 }
    },
    "Clusters": {
        "orders": { "Destinations": { "d1": { "Address": "http://1" }, "d2": { "Address": "http://2" } } },
        "users": {}
    }
}"#;

fn lines(new: &str) -> Vec<String> {
    let (old, new) = (config(OLD), config(new));
    let changes = diff(&old, &new);
    assert_eq!(apply(&old, &changes), new);
    changes.iter().map(ToString::to_string).collect()
}

#[test]
fn equal_configurations_have_no_changes() {
    assert_eq!(lines(OLD), [] as [&str; 0]);
}

#[test]
fn changes_read_well() {
    let new = r#"{
        "Routes": {
            "a": {
                "ClusterId": "orders", "Match": { "Path": "/v2/a", "Hosts": ["h"] },
                "Transforms": [{ "RequestHeader": "Authorization", "Set": "hunter2" }]
            },
            "c": { "Match": { "Path": "/c" } }
        },
        "Clusters": {
            "orders": {
                "LoadBalancingPolicy": "Random", "Metadata": { "k": "hunter2" },
                "Destinations": { "d1": { "Address": "http://1", "HealthPath": "/up", "Weight": 3 }, "d3": { "Address": "http://3" } }
            },
            "carts": { "Destinations": { "d": { "Address": "http://4" } } }
        }
    }"#;
    assert_eq!(
        lines(new),
        [
            "cluster orders: LoadBalancingPolicy = Random, Metadata added",
            "cluster orders: destination d2 removed",
            "cluster orders: destination d1: HealthPath = /up, Weight = 3",
            "cluster orders: destination d3 added at http://3",
            "cluster carts added with 1 destination",
            "route b removed",
            "route a: Match/Hosts = [\"h\"], Match/Path /a → /v2/a, Transforms added",
            "route c added",
            "cluster users removed",
        ]
    );
    assert!(!lines(new).concat().contains("hunter2"));
}

#[test]
fn a_change_of_case_is_a_change() {
    // E25: YARP compares addresses ignoring case and keeps the old one.
    let new = OLD.replace("http://1", "HTTP://1");
    assert_eq!(
        lines(&new),
        ["cluster orders: destination d1: Address http://1 → HTTP://1"]
    );
}

#[test]
fn a_new_spelling_of_an_id_is_a_change() {
    let new = config(
        &OLD.replace("\"users\"", "\"Users\"")
            .replace("\"d1\"", "\"D1\"")
            .replace("\"b\"", "\"B\""),
    );
    let changes = diff(&config(OLD), &new);
    let lines: Vec<_> = changes.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "cluster orders: destination D1: is spelled otherwise",
            "cluster Users: is spelled otherwise",
            "route B: is spelled otherwise",
        ]
    );
    let applied = apply(&config(OLD), &changes);
    assert_eq!(
        serde_json::to_string(&applied).unwrap(),
        serde_json::to_string(&new).unwrap()
    );
    let reference = OLD.replace("\"ClusterId\": \"orders\"", "\"ClusterId\": \"Orders\"");
    assert_eq!(
        self::lines(&reference),
        ["route a: ClusterId orders → Orders"]
    );
}

#[test]
fn a_partition_that_moves_is_a_change() {
    let with = |partitions: &str| {
        config(&format!(
            r#"{{ "Routes": {{ "r": {{ "Match": {{ "Path": "/" }}, "PartitionedClusters": {{
                "Key": {{ "Header": "k" }}, "Partitions": [ {partitions} ] }} }} }} }}"#
        ))
    };
    let old = with(r#"{ "ClusterId": "a", "LowKey": 0, "HighKey": 9 }"#);
    for partitions in [
        r#"{ "ClusterId": "a", "LowKey": 0, "HighKey": 8 }"#,
        r#"{ "ClusterId": "A", "LowKey": 0, "HighKey": 9 }"#,
    ] {
        let new = with(partitions);
        let changes = diff(&old, &new);
        assert_eq!(apply(&old, &changes), new);
        let [Change::RouteChanged { fields, .. }] = &changes[..] else {
            panic!("{changes:?}");
        };
        let places: Vec<_> = fields.iter().map(|field| &*field.pointer).collect();
        assert_eq!(places, ["/PartitionedClusters/Partitions"]);
        assert_ne!(crate::Revision::of(&old), crate::Revision::of(&new));
    }
}

#[test]
fn order_is_a_change_of_its_own() {
    let new = r#"{
        "Routes": {
            "b": { "Match": { "Path": "/b" }, "Order": 1 },
            "a": { "ClusterId": "orders", "Match": { "Path": "/a" } }
        },
        "Clusters": {
            "users": {},
            "orders": { "Destinations": { "d2": { "Address": "http://2" }, "d1": { "Address": "http://1" } } }
        }
    }"#;
    assert_eq!(
        lines(new),
        [
            "cluster orders: destinations are in another order",
            "routes are in another order",
            "clusters are in another order",
        ]
    );
}

#[test]
fn changes_that_do_not_fit_do_nothing() {
    let added = Change::DestinationAdded {
        cluster: "nowhere".into(),
        id: "d".into(),
        config: Box::default(),
    };
    let gone = Change::ClusterRemoved {
        id: "nowhere".into(),
    };
    assert_eq!(apply(&config(OLD), &[added, gone]), config(OLD));
}

#[test]
fn ids_cannot_break_lines() {
    let change = Change::RouteRemoved {
        id: "a\nb\u{1b}[31m".into(),
    };
    assert_eq!(change.to_string(), "route a\\nb\\u{1b}[31m removed");
}

#[test]
fn what_may_be_secret_is_not_shown() {
    let new = r#"{
        "Routes": {
            "a": {
                "ClusterId": "orders",
                "Match": {
                    "Path": "/a", "Headers": [{ "Name": "X-Key", "Values": ["hunter2"] }],
                    "QueryParameters": [{ "Name": "key", "Values": ["hunter2"] }]
                }
            },
            "b": { "Match": { "Path": "/@b" }, "Order": 1 }
        },
        "Clusters": {
            "orders": {
                "HttpClient": { "MaxConnectionsPerServer": 5, "WebProxy": { "Address": "http://me:hunter2@proxy" } },
                "HealthCheck": { "Active": { "Enabled": true, "Path": "/p", "Query": "?key=hunter2" } },
                "HttpRequest": {},
                "Destinations": {
                    "d1": { "Address": "http://me:hunter2@1", "Health": "http:hunter2@1" },
                    "d2": { "Address": "http://2" },
                    "d3": { "Address": "https:\\\\me:hunter@2/hunter2@3/x" }
                }
            },
            "users": {}
        }
    }"#;
    let there = lines(new);
    assert_eq!(
        there,
        [
            "cluster orders: HealthCheck/Active/Enabled = true, HealthCheck/Active/Path = /p, \
             HealthCheck/Active/Query added, HttpClient/MaxConnectionsPerServer = 5, HttpClient/WebProxy added, \
             HttpRequest = {}",
            "cluster orders: destination d1: Address http://1 → http://…@1, Health = …@1",
            "cluster orders: destination d3 added at https://…@3/x",
            "route a: Match/Headers added, Match/QueryParameters added",
            "route b: Match/Path /b → /@b",
        ]
    );
    let back = diff(&config(new), &config(OLD));
    let back: Vec<_> = back.iter().map(ToString::to_string).collect();
    assert!(back[0].contains("HttpClient/WebProxy removed"), "{back:?}");
    assert!(
        !(there.concat() + &back.concat()).contains("hunter"),
        "{back:?}"
    );
}
