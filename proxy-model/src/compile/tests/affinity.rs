//! Clusters whose affinity keys meet at one client.

use super::*;

/// A sticky cluster with one destination, called `id`, and these further settings.
fn sticky(id: &str, more: Value) -> Value {
    let mut affinity = json!({ "Enabled": true, "AffinityKeyName": "k" });
    let fields = affinity.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    json!({ "SessionAffinity": affinity, "Destinations": { id: { "Address": "http://d/" } } })
}

fn to(cluster: &str, hosts: Value) -> Value {
    json!({ "ClusterId": cluster, "Match": { "Path": format!("/{cluster}"), "Hosts": hosts } })
}

/// Code and place of each problem.
fn problems(value: Value) -> Vec<String> {
    let (_, problems) = compile(value).unwrap();
    let shown = problems.iter().map(|p| format!("{} {}", p.code, p.pointer));
    shown.collect()
}

#[test]
fn clusters_that_share_a_key_on_a_host_are_pointed_out() {
    let all = json!([]);
    let shop = json!(["shop.example"]);
    let cookie = |cookie: Value| json!({ "Cookie": cookie });
    let header = |name: &str| json!({ "Policy": "CustomHeader", "AffinityKeyName": name });
    for (hosts, settings, is_shared) in [
        ([all.clone(), all.clone()], [json!({}), json!({})], true),
        // Cookies know no ports.
        (
            [json!(["Shop.example:81"]), shop.clone()],
            [json!({}), json!({})],
            true,
        ),
        ([all.clone(), shop.clone()], [json!({}), json!({})], true),
        ([shop.clone(), all.clone()], [json!({}), json!({})], true),
        (
            [json!(["*.example"]), shop.clone()],
            [json!({}), json!({})],
            true,
        ),
        (
            [shop.clone(), json!(["*.example"])],
            [json!({}), json!({})],
            true,
        ),
        (
            [json!(["*.a.example"]), json!(["*.example"])],
            [json!({}), json!({})],
            true,
        ),
        (
            [json!(["*.example"]), json!(["*.a.example"])],
            [json!({}), json!({})],
            true,
        ),
        (
            [json!(["example"]), json!(["*.example"])],
            [json!({}), json!({})],
            false,
        ),
        (
            [shop.clone(), json!(["other.example"])],
            [json!({}), json!({})],
            false,
        ),
        (
            [shop, json!(["other.example"])],
            [
                cookie(json!({ "Domain": "example" })),
                cookie(json!({ "Domain": "example" })),
            ],
            true,
        ),
        (
            [all.clone(), all.clone()],
            [cookie(json!({ "Path": "/a" })), json!({})],
            false,
        ),
        (
            [all.clone(), all.clone()],
            [
                cookie(json!({ "Path": "/" })),
                json!({ "Policy": "ArrCookie" }),
            ],
            true,
        ),
        (
            [all.clone(), all.clone()],
            [json!({}), json!({ "AffinityKeyName": "K" })],
            false,
        ),
        (
            [all.clone(), all.clone()],
            [header("X-Key"), header("x-key")],
            true,
        ),
        ([all.clone(), all.clone()], [header("k"), json!({})], false),
        (
            [all.clone(), all],
            [json!({}), json!({ "Enabled": false })],
            false,
        ),
    ] {
        let [first, second] = settings;
        let value = json!({
            "Routes": { "a": to("a", hosts[0].clone()), "b": to("b", hosts[1].clone()) },
            "Clusters": { "a": sticky("one", first), "b": sticky("two", second) },
        });
        let expected: &[_] = match is_shared {
            true => &["shared_affinity_key_name /Clusters/b/SessionAffinity/AffinityKeyName"],
            false => &[],
        };
        assert_eq!(problems(value.clone()), expected, "{value}");
    }
}

/// The key of one cluster is as good at the other one.
#[test]
fn clusters_of_the_same_destinations_may_share_a_key() {
    let of = |policy: &str, id: &str| {
        json!({
            "Routes": { "a": to("a", json!([])), "b": to("b", json!([])) },
            "Clusters": { "a": sticky("d1", json!({ "Policy": policy })),
                "b": sticky(id, json!({ "Policy": policy })) },
        })
    };
    accepted(of("HashCookie", "D1"));
    accepted(of("ArrCookie", "d1"));
    assert_eq!(problems(of("HashCookie", "d2")).len(), 1);
    assert_eq!(
        problems(of("Cookie", "d1")).len(),
        1,
        "it names the cluster"
    );
}

/// Clusters that no route leads to, and those of one split, give a client one key.
#[test]
fn a_split_shares_its_key_and_has_to() {
    let split = |settings: Value| {
        json!({
            "Routes": { "r": { "Match": { "Path": "/" }, "WeightedClusters": [
                { "ClusterId": "a", "Weight": 9 }, { "ClusterId": "b", "Weight": 0 },
                { "ClusterId": "gone", "Weight": 1 }] } },
            "Clusters": { "a": sticky("d1", json!({})), "b": sticky("d2", settings),
                "c": sticky("d3", json!({})) },
        })
    };
    let missing = "unknown_cluster /Routes/r/WeightedClusters/2/ClusterId";
    assert_eq!(
        problems(split(json!({ "DrainTimeout": "00:01:00" }))),
        [missing]
    );
    for settings in [
        json!({ "Enabled": false }),
        json!({ "AffinityKeyName": "other" }),
        json!({ "Policy": "ArrCookie" }),
        json!({ "Cookie": { "Path": "/b" } }),
        json!({ "Cookie": { "Domain": "b.example" } }),
    ] {
        assert_eq!(
            problems(split(settings.clone())),
            [
                missing,
                "unlike_session_affinity /Routes/r/WeightedClusters"
            ],
            "{settings}"
        );
    }
}

/// The positions of clusters behind one with errors are right.
#[test]
fn a_cluster_with_errors_moves_no_warning() {
    let value = json!({
        "Routes": { "a": to("a", json!([])), "b": to("b", json!([])) },
        "Clusters": {
            "bad": { "LoadBalancingPolicy": "?" },
            "a": sticky("one", json!({})),
            "b": sticky("two", json!({})),
        },
    });
    let problems = compile(value.clone()).unwrap_err();
    assert_eq!(problems.len(), 2, "{problems}");
    let (_, problems) = Snapshot::compile_isolated(config(value), &options());
    assert!(
        problems
            .iter()
            .any(|p| p.code == "shared_affinity_key_name")
    );
}
