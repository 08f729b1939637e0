//! A file as users of YARP have it, with every key.

use proxy_model::json::{Node, parse_document, read_reverse_proxy};
use proxy_model::{CompileOptions, RouteId, Snapshot};

const SAMPLE: &str = include_str!("data/appsettings.json");

fn options() -> CompileOptions {
    CompileOptions::default()
        .with_output_cache_policies(["Hour"])
        .with_filters(["audit"])
        .with_layers(["retry", "trace"])
}

#[test]
fn the_sample_is_read_and_compiled_without_a_word() {
    let config = read_reverse_proxy(SAMPLE).unwrap();
    let (snapshot, problems) = Snapshot::compile(config, &options()).unwrap();
    assert!(problems.is_empty(), "{problems}");
    assert_eq!((snapshot.routes().len(), snapshot.clusters().len()), (8, 2));

    let route = snapshot.route(&RouteId::new("orders")).unwrap();
    assert_eq!(route.order(), 10);
    assert!(route.transforms().original_host());
    assert_eq!(route.transforms().target().len(), 8);
    let destination = &snapshot.clusters()[0].destinations()[0];
    assert_eq!(
        destination.address().to_string(),
        "https://10.0.0.7:8443/shop/"
    );
    assert_eq!(destination.zone(), Some("west"));
    let check = snapshot.clusters()[0].active_check().unwrap();
    assert_eq!(check.path_at(destination), "/healthz");
    assert!((check.threshold() - 3.0).abs() < f64::EPSILON);
}

#[test]
fn keys_may_be_written_in_any_case() {
    fn lowered(node: &Node) -> serde_json::Value {
        match node {
            Node::Null => serde_json::Value::Null,
            Node::Boolean(value) => (*value).into(),
            Node::Number(number) => number.clone().into(),
            Node::Text(text) => text.clone().into(),
            Node::List(nodes) => nodes.iter().map(lowered).collect(),
            Node::Object(object) => {
                let entries = object
                    .iter()
                    .map(|(key, node)| (key.to_lowercase(), lowered(node)));
                serde_json::Value::Object(entries.collect())
            }
        }
    }
    let document = lowered(&parse_document(SAMPLE).unwrap()).to_string();
    let lower = read_reverse_proxy(&document).unwrap();
    let (_, problems) = Snapshot::compile(lower, &options()).unwrap();
    assert!(problems.is_empty(), "{problems}");
}

#[test]
fn what_is_written_is_read_again() {
    let config = read_reverse_proxy(SAMPLE).unwrap();
    let written = serde_json::to_string_pretty(&config).unwrap();
    let again = proxy_model::config::ProxyConfig::from_json(&written).unwrap();
    assert_eq!(again, config);
    assert_eq!(serde_json::to_string_pretty(&again).unwrap(), written);
}
