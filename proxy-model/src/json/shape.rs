//! The corrections for values of another shape than the expected one: a list, an object, an object by name.

use super::node::{Node, Object};
use super::scalar::TypeMismatch;
use crate::suggest::shortened;

/// A value that is no object.
pub(super) fn not_an_object(node: &Node) -> TypeMismatch {
    let mut mismatch = TypeMismatch::wrong_type("an object", node);
    if let Node::List(nodes) = node
        && let [Node::Object(_)] = &**nodes
    {
        mismatch.suggestion = Some("remove the brackets around it".to_owned());
    }
    mismatch
}

/// A value of `key` that is no object by name.
pub(super) fn not_by_name(key: &str, node: &Node) -> TypeMismatch {
    let mut mismatch = TypeMismatch::wrong_type("an object", node);
    if let Node::List(nodes) = node {
        let value = match nodes.first() {
            Some(Node::Text(_)) => "\"…\"",
            _ => "{ … }",
        };
        mismatch.suggestion = Some(format!(
            "write an object with a name for each: `\"{key}\": {{ \"name\": {value} }}`"
        ));
    }
    mismatch
}

/// A value of `key` that is no list.
pub(super) fn not_a_list(key: &str, node: &Node) -> TypeMismatch {
    let mut mismatch = TypeMismatch::wrong_type("a list", node);
    mismatch.suggestion = match node {
        Node::Text(text) => Some(match text.trim() {
            "" => format!("remove `{key}`"),
            _ => format!("write `[\"{}\"]`", shortened(text)),
        }),
        Node::Object(object) => unnumbered(object).map(|name| {
            format!(
                "write `\"{key}\": [ {{ … }} ]`; as a flattened key or a variable, with a position before `{}`: `{key}:0`",
                shortened(name)
            )
        }),
        _ => None,
    };
    mismatch
}

/// The first key that is no position in a list.
fn unnumbered(object: &Object) -> Option<&str> {
    let mut names = object.iter().map(|(name, _)| name);
    names.find(|name| name.parse::<u32>().is_err())
}

#[cfg(test)]
mod tests {
    use crate::config::ProxyConfig;

    fn correction(text: &str) -> String {
        let problems = ProxyConfig::from_json(text).unwrap_err();
        let problem = problems.iter().next().unwrap();
        problem.suggestion.clone().unwrap_or_default()
    }

    #[test]
    fn other_shapes_come_with_the_right_one() {
        let route = |route: &str| format!(r#"{{ "Routes": {{ "r": {{ {route} }} }} }}"#);
        let cluster = |cluster: &str| format!(r#"{{ "Clusters": {{ "c": {{ {cluster} }} }} }}"#);
        for (text, expected) in [
            (
                route(r#""Transforms": { "PathRemovePrefix": "/x" }"#),
                "write `\"Transforms\": [ { … } ]`; as a flattened key or a variable, with a position before `PathRemovePrefix`: `Transforms:0`",
            ),
            (
                route(r#""WeightedClusters": { "c": 5 }"#),
                "write `\"WeightedClusters\": [ { … } ]`; as a flattened key or a variable, with a position before `c`: `WeightedClusters:0`",
            ),
            (
                route(r#""Match": [ { "Path": "/" } ]"#),
                "remove the brackets around it",
            ),
            (route(r#""Match": { "Hosts": "a" }"#), "write `[\"a\"]`"),
            (
                cluster(r#""Destinations": [ { "Address": "http://a" } ]"#),
                "write an object with a name for each: `\"Destinations\": { \"name\": { … } }`",
            ),
            (
                cluster(r#""Metadata": [ "a" ]"#),
                "write an object with a name for each: `\"Metadata\": { \"name\": \"…\" }`",
            ),
            (
                cluster(r#""Destinations": { "1": "http://a" }"#),
                "write `{ \"Address\": \"http://a\" }`",
            ),
            (
                route(r#""Match": { "PathPrefix": "/api" }"#),
                "write `\"Path\": \"/api/{**rest}\"`",
            ),
            (
                route(r#""Match": { "PathPrefix": "/" }"#),
                "write `\"Path\": \"/{**rest}\"`",
            ),
            (
                route(r#""Match": { "Host": "shop.example" }"#),
                "write `\"Hosts\": [ \"shop.example\" ]`",
            ),
            (
                route(r#""MaxRequestBodySize": "10MB""#),
                "write the number without a unit; in bytes it is `10000000`",
            ),
            (
                route(r#""MaxRequestBodySize": "8 MiB""#),
                "write the number without a unit; in bytes it is `8388608`",
            ),
            (
                route(r#""MaxRequestBodySize": "1k""#),
                "write the number without a unit; in bytes it is `1024`",
            ),
            (route(r#""Order": "ten""#), ""),
        ] {
            assert_eq!(correction(&text), expected, "{text}");
        }
    }
}
