use serde_json::{Map, Value, json};

use super::*;
use crate::sources::{parse_registry, parse_static};

const SCHEMA: &str = include_str!("../../schema/config.json");
const EXAMPLE: &str = include_str!("../../examples/control-plane.yaml");

fn parse(text: &str) -> Result<Config, Vec<String>> {
    let parsed = Config::parse(text, Path::new("/etc/xds"));
    parsed.map_err(|problems| {
        problems
            .iter()
            .map(|p| format!("{} {}", p.code, p.pointer))
            .collect()
    })
}

#[test]
fn the_example_is_read_with_its_files() {
    let config = parse(EXAMPLE).unwrap();
    assert_eq!(&*config.domain_suffix, "vrts-slb.test.vertis.yandex.net");
    assert_eq!(
        config.registry,
        Some(RegistrySection::File("/etc/xds/registry.yaml".into()))
    );
    assert_eq!(config.static_file, Some("/etc/xds/static.yaml".into()));
    let consul = config.consul_source().unwrap();
    assert_eq!(consul.watch.own_datacenter.as_deref(), Some("sas"));
    assert_eq!(
        consul.defaults_key.as_deref(),
        Some("envoy/defaultSettings")
    );
    let registry = parse_registry(include_str!("../../examples/registry.yaml")).unwrap();
    assert_eq!((registry.services.len(), registry.bad.len()), (2, 0));
    let fixed = parse_static(include_str!("../../examples/static.yaml")).unwrap();
    assert_eq!((fixed.services.len(), fixed.listeners.len()), (2, 2));
}

#[test]
fn what_is_not_said_is_at_its_default() {
    let config = parse("static: {file: s.yaml}").unwrap();
    let expected = Config {
        static_file: Some("/etc/xds/s.yaml".into()),
        ..Config::default()
    };
    assert_eq!(config, expected);
    assert_eq!((config.listen.port(), config.admin.port()), (1701, 1702));
}

#[test]
fn every_limit_of_the_server_can_be_set() {
    let text = "static: {file: s.yaml}
adminHosts: [xds.example]
limits: {connections: 1, connectionsPerAddress: 2, streamsPerConnection: 3, streamsPerAddress: 4, namesPerStream: 5,
  namesPerAddress: 6, requestBytes: 7, opening: 8s, pingInterval: 9s, pingTimeout: 10s, patience: 11s, removalGrace: 12s,
  additionLead: 13s, drain: 14s}";
    let config = parse(text).unwrap();
    assert_eq!(config.admin_hosts, ["xds.example"]);
    let options = config.server();
    let numbers = [
        options.connections,
        options.connections_per_peer,
        options.streams_per_connection as usize,
        options.streams_per_peer,
        options.names_per_stream,
        options.names_per_peer,
        options.request_bytes,
    ];
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7]);
    let times = [
        options.opening_timeout,
        options.ping_interval,
        options.ping_timeout,
        options.patience,
        options.removal_grace,
        options.addition_lead,
        options.drain,
    ];
    assert_eq!(times.map(|time| time.as_secs()), [8, 9, 10, 11, 12, 13, 14]);
    let bad = parse("static: {file: s.yaml}\nlimits: {connections: 0}").unwrap_err();
    assert_eq!(bad, ["out_of_range /limits/connections"]);
}

#[test]
fn tls_is_a_certificate_with_its_key() {
    let with = |tls: &str| parse(&format!("static: {{file: s.yaml}}\ntls: {tls}"));
    let config = with("{certificateFile: c.pem, keyFile: /k.pem, clientCaFile: ca.pem}").unwrap();
    let expected = TlsSection {
        certificate_file: "/etc/xds/c.pem".into(),
        key_file: "/k.pem".into(),
        client_ca_file: Some("/etc/xds/ca.pem".into()),
    };
    assert_eq!(config.tls, Some(expected));
    assert_eq!(
        with("{certificateFile: c.pem}").unwrap_err(),
        ["missing /tls/keyFile"]
    );
    assert_eq!(
        with("{keyFile: k.pem}").unwrap_err(),
        ["missing /tls/certificateFile"]
    );
    #[cfg(feature = "tls")]
    assert!(config.server().tls.is_some());
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let cases: &[(&str, &[&str])] = &[
        ("{}", &["no_source "]),
        ("registry: {}", &["one_of /registry"]),
        (
            "registry: {file: a, url: 'http://b'}",
            &["one_of /registry"],
        ),
        ("registry: {url: 'ftp://b'}", &["invalid_url /registry/url"]),
        (
            "registry: {file: a, poll: 1s}",
            &["without_meaning /registry/poll"],
        ),
        (
            "registry: {url: 'http://b', poll: 1s, wait: 60s}",
            &["conflict /registry/poll"],
        ),
        ("static: {}", &["missing /static/file"]),
        (
            "static: {file: a}\nlisten: here",
            &["invalid_address /listen"],
        ),
        (
            "static: {file: a}\nlisen: 1.2.3.4:5",
            &["unknown_key /lisen"],
        ),
        (
            "static: {file: a}\nhealthCheck: {http: ping}",
            &["invalid_path /healthCheck/http"],
        ),
        (
            "static: {file: a}\ndomains: {ports: [0]}",
            &["out_of_range /domains/ports/0"],
        ),
        (
            "static: {file: a}\ndebounce: {max: 2d}",
            &["out_of_range /debounce/max"],
        ),
        (
            "consul: {labelPrefix: 'x.'}",
            &["without_meaning /consul/labelPrefix"],
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text).unwrap_err(), *expected, "{text}");
    }
}

/// The schema of what is built here: the program has everything.
fn schema() -> Value {
    let mut schema: Value = serde_json::from_str(SCHEMA).unwrap();
    if cfg!(not(feature = "providers")) {
        let properties = schema["properties"].as_object_mut().unwrap();
        for of_gateways in [
            "ServiceFabricDiscovery",
            "SerfDiscovery",
            "ReverseProxyFiles",
            "bridge",
        ] {
            properties.remove(of_gateways).unwrap();
        }
    }
    schema
}

/// A value that the schema allows for a property.
fn sample(schema: &Value, root: &Value) -> Value {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let pointer = reference.trim_start_matches('#');
        return sample(root.pointer(pointer).unwrap(), root);
    }
    if let Some(value) = schema.get("default").or_else(|| schema.pointer("/enum/0")) {
        return value.clone();
    }
    if let Some(first) = schema.pointer("/oneOf/0") {
        return sample(first, root);
    }
    match schema["type"].as_str().unwrap() {
        "object" => {
            let properties = schema["properties"].as_object().unwrap().iter();
            Value::Object(
                properties
                    .map(|(key, schema)| (key.clone(), sample(schema, root)))
                    .collect(),
            )
        }
        "array" => json!([sample(&schema["items"], root)]),
        "boolean" => json!(true),
        "integer" | "number" => schema["minimum"].clone(),
        _ if schema.get("pattern").is_some_and(|pattern| pattern == "^/") => json!("/"),
        _ if schema.get("pattern").is_some() => json!("5s"),
        _ => json!("x"),
    }
}

/// Every property of the schema is a key that is read, and every one by itself passes.
#[test]
fn the_schema_knows_what_the_reader_knows() {
    let schema = schema();
    let mut document = sample(&schema, &schema);
    document["registry"] = json!({"file": "x"});
    document["consul"].as_object_mut().unwrap().remove("token");
    let parsed = parse(&document.to_string());
    assert!(parsed.is_ok(), "{document}: {parsed:?}");
    document["registry"] = json!({"url": "http://x", "wait": "5s", "tokenFile": "x"});
    document["consul"]
        .as_object_mut()
        .unwrap()
        .remove("tokenFile");
    document["consul"]["token"] = json!("x");
    let parsed = parse(&document.to_string());
    assert!(parsed.is_ok(), "{document}: {parsed:?}");

    // The other way round: the reader names the keys that it knows.
    let unknown = r#"{"nothing": 1, "static": {"file": "x"}}"#;
    assert_eq!(parse(unknown).unwrap_err(), ["unknown_key /nothing"]);
    let problems = Config::parse(unknown, Path::new(""))
        .unwrap_err()
        .to_string();
    let properties: &Map<String, Value> = schema["properties"].as_object().unwrap();
    for key in properties.keys() {
        assert!(
            problems.contains(&format!("`{key}`")),
            "{key} in {problems}"
        );
    }
}

#[test]
fn defaults_of_the_schema_are_the_defaults() {
    let schema = schema();
    let mut document = json!({"static": {"file": "x"}});
    for (key, property) in schema["properties"].as_object().unwrap() {
        if let Some(default) = property.get("default") {
            document[key] = default.clone();
        }
        for (inner, property) in property
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            if let Some(default) = property
                .get("default")
                .filter(|_| ["domains", "debounce", "bridge"].contains(&key.as_str()))
            {
                document[key][inner] = default.clone();
            }
        }
    }
    let expected = Config {
        static_file: Some("/etc/xds/x".into()),
        ..Config::default()
    };
    assert_eq!(parse(&document.to_string()), Ok(expected));
}
