//! The output and exit codes of the program: `check`, `explain`, `discover`, `schema`, wrong usage.

use crate::common::{ConfigFile, output};
use serde_json::{Value, json};

const GOOD: &str = r#"{
    // Comments and trailing commas are allowed.
    "ReverseProxy": {
        "Routes": {
            "r1": { "ClusterId": "c1", "Match": { "Path": "/api/{p}", "Methods": ["GET"] } },
            "r2": { "ClusterId": "none", "Match": { "Path": "/none" } },
            "r3": { "ClusterId": "empty", "Match": { "Path": "/empty" } },
            "r4": { "Match": { "Path": "/parts" }, "PartitionedClusters": {
                "Key": { "Header": "X-Key" },
                "Hash": "Fnv1a64",
                "Partitions": [
                    { "ClusterId": "c1", "LowKey": -9223372036854775808, "HighKey": -1 },
                    { "ClusterId": "empty", "LowKey": 0, "HighKey": 9223372036854775807 },
                ],
            } },
        },
        "Clusters": {
            "c1": { "Destinations": {
                "d2": { "Address": "http://10.0.0.2/base/" },
                "d1": { "Address": "http://10.0.0.1:8080", "Weight": 0 },
            } },
            "empty": {},
        },
    },
}"#;

const BAD: &str = r#"{
    "ReverseProxy": {
        "Routes": {
            "r1": { "ClusterId": "c1", "Match": { "Path": "/{a", "Methods": ["GTE"] } },
            "r2": { "Mach": {} },
            "r3": { "ClusterId": "c1", "Match": { "Path": "/" }, "Filters": ["audit"], "Layers": ["retry"] }
        },
        "Clusters": {
            "c1": { "LoadBalancingPolicy": "RoundRobbin", "Destinations": { "d1": { "Address": "nonsense" } } }
        }
    },
    "Listeners": { "web": { "Address": "nowhere" } }
}"#;

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in:\n{text}"))
}

#[tokio::test]
async fn check_accepts_what_is_good_and_warns() {
    let file = ConfigFile::new(GOOD);
    let checked = output(&["check", "--config", &file.argument(), "--format", "json"]).await;
    let verdict = parse(&checked.expect_success().stdout);
    assert_eq!(verdict["valid"], true);
    let problem = &verdict["problems"][0];
    assert_eq!(problem["severity"], "warning");
    assert_eq!(problem["code"], "unknown_cluster");
    assert_eq!(problem["pointer"], "/ReverseProxy/Routes/r2/ClusterId");
}

#[tokio::test]
async fn check_names_every_problem_at_once_and_ends_with_1() {
    let file = ConfigFile::new(BAD);
    let checked = output(&["check", "--config", &file.argument(), "--format", "json"]).await;
    assert_eq!(checked.status.code(), Some(1));
    let verdict = parse(&checked.stdout);
    assert_eq!(verdict["valid"], false);
    let problems = verdict["problems"].as_array().unwrap();
    let at = |pointer: &str| {
        let found = problems
            .iter()
            .find(|problem| problem["pointer"] == pointer);
        found.unwrap_or_else(|| panic!("no problem at {pointer}: {problems:#?}"))
    };
    for pointer in [
        "/ReverseProxy/Routes/r1/Match/Path",
        "/ReverseProxy/Routes/r1/Match/Methods/0",
        "/ReverseProxy/Routes/r2/Mach",
        "/ReverseProxy/Routes/r3/Layers/0",
        "/ReverseProxy/Clusters/c1/Destinations/d1/Address",
        "/Listeners/web/Address",
    ] {
        assert_eq!(at(pointer)["severity"], "error");
    }
    let policy = at("/ReverseProxy/Clusters/c1/LoadBalancingPolicy");
    assert!(
        policy["suggestion"]
            .as_str()
            .unwrap()
            .contains("RoundRobin")
    );
    let filter = &at("/ReverseProxy/Routes/r3/Filters/0")["message"];
    assert_eq!(filter, "`audit` is not a known filter; none is registered");
    for problem in problems {
        assert!(problem.as_object().unwrap().contains_key("suggestion"));
    }

    let text = output(&["check", "--config", &file.argument()]).await;
    assert_eq!(text.status.code(), Some(1));
    assert!(text.stdout.contains("cannot be used"), "{}", text.stdout);
}

#[tokio::test]
async fn check_warns_of_certificates_that_cannot_be_used_here() {
    let tls = r#""Listeners": { "web": { "Address": "127.0.0.1:0", "Tls": { "Certificates": [
        { "CertificateFile": "/no/such.pem", "KeyFile": "/no/such.key" } ] } } },"#;
    let file = ConfigFile::new(&GOOD.replacen('{', &format!("{{ {tls}"), 1));
    let checked = output(&["check", "--config", &file.argument(), "--format", "json"]).await;
    let verdict = parse(&checked.expect_success().stdout);
    let problems = verdict["problems"].as_array().unwrap();
    let found = problems
        .iter()
        .find(|p| p["code"] == "unusable_certificate")
        .unwrap();
    assert_eq!(found["pointer"], "/Listeners/web/Tls/Certificates/0");
    assert!(found["message"].as_str().unwrap().contains("/no/such.pem"));
}

/// Keys of affinity are checked, and are never shown.
#[tokio::test]
async fn check_judges_the_keys_of_affinity() {
    const KEY: &str = "5ZMkv5BFTTk8FqV1bs5fJpSsPLoeCF5RFmtz2h5WQ0Y=";
    let sealed = GOOD.replacen(
        "\"Clusters\": {",
        "\"Clusters\": { \"s\": { \"SessionAffinity\": { \"Enabled\": true, \"Policy\": \"Cookie\", \"AffinityKeyName\": \"k\" } },",
        1,
    );
    assert_ne!(sealed, GOOD);
    for (server, expected) in [
        (String::new(), Some("random_affinity_key")),
        (
            format!(r#""Server": {{ "AffinityKeys": ["{KEY}"] }},"#),
            None,
        ),
        (
            r#""Server": { "AffinityKeys": ["hunter2"] },"#.to_owned(),
            Some("invalid_affinity_keys"),
        ),
        (
            format!(r#""Server": {{ "AffinityKeys": ["{KEY}"], "AffinityKeysFile": "/a" }},"#),
            Some("conflicting_settings"),
        ),
        (
            r#""Server": { "AffinityKeysFile": "/no/such/keys" },"#.to_owned(),
            Some("unusable_affinity_keys"),
        ),
    ] {
        let file = ConfigFile::new(&sealed.replacen('{', &format!("{{ {server}"), 1));
        let checked = output(&["check", "--config", &file.argument(), "--format", "json"]).await;
        let verdict = parse(&checked.stdout);
        let problems = verdict["problems"].as_array().unwrap();
        let of_keys = problems
            .iter()
            .filter_map(|problem| problem["code"].as_str());
        let found: Vec<_> = of_keys
            .filter(|code| code.contains("affinity") || code.contains("conflicting"))
            .collect();
        assert_eq!(found, Vec::from_iter(expected), "{server}");
        assert!(!checked.stdout.contains("hunter2") && !checked.stdout.contains(KEY));
    }
}

#[tokio::test]
async fn what_is_not_honoured_is_named_beside_errors() {
    let text = BAD.replacen(
        r#""c1": {"#,
        r#""c2": { "HttpClient": { "WebProxy": { "Address": "http://proxy.example:3128/", "UseDefaultCredentials": true } } }, "c1": {"#,
        1,
    );
    let file = ConfigFile::new(&text);
    let checked = output(&["check", "--config", &file.argument(), "--format", "json"]).await;
    assert_eq!(checked.status.code(), Some(1));
    let verdict = parse(&checked.stdout);
    let problems = verdict["problems"].as_array().unwrap();
    let pointer = "/ReverseProxy/Clusters/c2/HttpClient/WebProxy";
    assert!(
        problems.iter().any(|p| p["code"] == "not_applicable"
            && p["pointer"].as_str().unwrap().starts_with(pointer)),
        "{problems:#?}"
    );
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_a_problem_like_others() {
    let checked = output(&[
        "check",
        "--config",
        "/no/such/file.json",
        "--format",
        "json",
    ])
    .await;
    assert_eq!(checked.status.code(), Some(1));
    let verdict = parse(&checked.stdout);
    assert_eq!(verdict["problems"][0]["code"], "unreadable_file");

    let file = ConfigFile::new("{ \"ReverseProxy\": ");
    let checked = output(&["check", "--config", &file.argument(), "--format", "json"]).await;
    assert_eq!(checked.status.code(), Some(1));
    let message = parse(&checked.stdout)["problems"][0]["message"].to_string();
    assert!(message.contains("line"), "{message}");
}

#[tokio::test]
async fn later_files_lie_on_earlier_ones() {
    let base = ConfigFile::new(GOOD);
    let above = ConfigFile::new(
        r#"{ "reverseproxy": { "clusters": { "C1": { "destinations": { "D2": { "address": "https://b.example" } } } } } }"#,
    );
    let explained = output(&[
        "explain",
        "--config",
        &base.argument(),
        "--config",
        &above.argument(),
        "--url",
        "http://a.example/api/1",
        "--format",
        "json",
    ])
    .await;
    let explanation = parse(&explained.expect_success().stdout);
    assert_eq!(explanation["forwarded"]["uri"], "https://b.example/api/1");
}

async fn explain(arguments: &[&str]) -> Value {
    let file = ConfigFile::new(GOOD);
    let path = file.argument();
    let mut all = vec!["explain", "--config", &path, "--format", "json"];
    all.extend(arguments);
    parse(&output(&all).await.expect_success().stdout)
}

#[tokio::test]
async fn explain_says_where_a_request_would_go() {
    let explanation = explain(&[
        "--url",
        "http://shop.example/api/x%2Fy?q=1",
        "--header",
        "Accept: text/plain",
        "--remote-addr",
        "192.0.2.7:1234",
    ])
    .await;
    assert_eq!(explanation["outcome"], "matched");
    assert_eq!(explanation["route"], "r1");
    assert_eq!(explanation["cluster"], "c1");
    assert_eq!(explanation["policy"], "PowerOfTwoChoices");
    assert_eq!(explanation["route_values"], json!({ "p": "x%2Fy" }));
    let forwarded = &explanation["forwarded"];
    assert_eq!(forwarded["method"], "GET");
    assert_eq!(forwarded["uri"], "http://10.0.0.2/base/api/x%2Fy?q=1");
    let header = |name: &str| {
        let headers = forwarded["headers"].as_array().unwrap();
        let found = headers
            .iter()
            .find(|pair| pair[0].as_str().unwrap().eq_ignore_ascii_case(name));
        found.map(|pair| pair[1].as_str().unwrap().to_owned())
    };
    assert_eq!(header("host").as_deref(), Some("10.0.0.2"));
    assert_eq!(header("accept").as_deref(), Some("text/plain"));
    assert_eq!(header("x-forwarded-for").as_deref(), Some("192.0.2.7"));
    assert_eq!(header("x-forwarded-host").as_deref(), Some("shop.example"));
    assert_eq!(header("x-forwarded-proto").as_deref(), Some("http"));
    let destinations = explanation["destinations"].as_array().unwrap();
    assert_eq!(destinations.len(), 2);
    let d1 = destinations.iter().find(|d| d["id"] == "d1").unwrap();
    assert_eq!(d1["eligible"], false);
    assert!(d1["why"].as_str().unwrap().contains("weight"));
    let considered = explanation["considered"].as_array().unwrap();
    assert!(
        considered
            .iter()
            .any(|c| c["route"] == "r2" && c["rejected"] == "path")
    );
}

#[tokio::test]
async fn explain_names_what_was_wanted_and_the_rules() {
    let missing = explain(&["--url", "http://a/else"]).await;
    let nearest = &missing["considered"][0];
    assert_eq!(nearest["misses"][0]["criterion"], nearest["rejected"]);
    assert_eq!(nearest["misses"][0]["came"], "/else");
    let matched = explain(&["--url", "http://shop.example/api/x"]).await;
    let rules = matched["rules"].to_string();
    for rule in ["ActivityTimeout: ", "GET is idempotent"] {
        assert!(rules.contains(rule), "{rules}");
    }
}

#[tokio::test]
async fn explain_takes_a_line_of_the_access_log() {
    let line = r#"{"remote":"192.0.2.7:1234","scheme":"http","method":"GET","host":"shop.example","path":"/api/x?q=…",
        "status":502,"cluster":"c1","cause":"connection_refused"}"#;
    let file = ConfigFile::new(GOOD);
    let path = file.argument();
    let said = output(&["explain", "--config", &path, "--log-line", line]).await;
    let said = said.expect_success().stdout;
    for part in [
        "The log has 502, connection_refused, at the side of the destination: ",
        "Route r1 takes it.",
        "X-Forwarded-For: 192.0.2.7",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let rejected = output(&["explain", "--config", &path, "--log-line", "GET /"]).await;
    assert!(rejected.stderr.contains("not JSON"), "{}", rejected.stderr);
}

#[tokio::test]
async fn explain_lists_routes_that_no_request_can_reach() {
    let none = ConfigFile::new(GOOD);
    let arguments = ["explain", "--config", &none.argument(), "--all-shadowed"];
    let said = output(&arguments).await.expect_success().stdout;
    assert_eq!(said.trim_end(), "No route is shadowed by another one.");
    let file = ConfigFile::new(
        r#"{"ReverseProxy":{"Routes":{
            "all":{"Order":-1,"ClusterId":"c","Match":{"Path":"/{**rest}"}},
            "orders":{"ClusterId":"c","Match":{"Path":"/orders"}}},
        "Clusters":{"c":{"Destinations":{"d":{"Address":"http://127.0.0.1:1/"}}}}}}"#,
    );
    let arguments = ["explain", "--config", &file.argument(), "--all-shadowed"];
    let listed = output(&arguments).await;
    assert!(!listed.status.success(), "{}", listed.stdout);
    assert_eq!(
        listed.stdout.trim_end(),
        "orders: all takes all its requests"
    );
}

#[tokio::test]
async fn explain_knows_every_other_outcome() {
    let rejected = explain(&["--method", "PUT", "--url", "http://a/api/1"]).await;
    assert_eq!(rejected["outcome"], "method_not_allowed");
    assert_eq!(rejected["status"], 405);
    assert_eq!(rejected["allow"], json!(["GET"]));
    let missing = explain(&["--url", "http://a/else"]).await;
    assert_eq!(
        (&missing["outcome"], &missing["status"]),
        (&json!("not_found"), &json!(404))
    );
    let nowhere = explain(&["--url", "http://a/none"]).await;
    assert_eq!(
        (&nowhere["outcome"], &nowhere["status"]),
        (&json!("no_cluster"), &json!(503))
    );
    let empty = explain(&["--url", "http://a/empty"]).await;
    assert_eq!(
        (&empty["outcome"], &empty["status"]),
        (&json!("no_destination"), &json!(503))
    );
    let keyless = explain(&["--url", "http://a/parts"]).await;
    assert_eq!(
        (&keyless["outcome"], &keyless["status"]),
        (&json!("no_partition"), &json!(400))
    );
    assert_eq!(
        keyless["partition"]["why"],
        "the request has no partition key"
    );
}

#[tokio::test]
async fn explain_for_people_says_the_same() {
    let file = ConfigFile::new(GOOD);
    let text = output(&[
        "explain",
        "--config",
        &file.argument(),
        "--url",
        "http://a/api/1",
    ])
    .await;
    let text = text.expect_success().stdout;
    assert!(text.starts_with("Route r1 takes it."), "{text}");
    assert!(text.contains("http://10.0.0.2/base/api/1"));
    assert!(!text.contains("partition"), "{text}");

    let parts = async |headers: &[&str]| {
        let argument = file.argument();
        let mut arguments = vec!["explain", "--config", &argument, "--url", "http://a/parts"];
        arguments.extend(headers.iter().flat_map(|header| ["--header", header]));
        output(&arguments).await.expect_success().stdout
    };
    let text = parts(&["X-Key: foobar"]).await;
    assert!(text.starts_with("Route r4 takes it.\n"), "{text}");
    let line = "  partition by the header x-key = foobar, as a number -8821353812377114648: \
                -9223372036854775808 to -1\n";
    assert!(text.contains(line), "{text}");
    let text = parts(&["X-Key: a", "X-Key: b"]).await;
    let sentence =
        "Route r4 takes it, but the request has several partition keys that differ: 400.\n";
    assert!(text.starts_with(sentence), "{text}");
}

/// The listener is named if it makes a difference.
#[tokio::test]
async fn explain_asks_by_the_rules_of_a_listener() {
    let of = |listeners: &str| {
        ConfigFile::new(&GOOD.replacen('{', &format!(r#"{{ "Listeners": {{ {listeners} }},"#), 1))
    };
    let ask = async |file: &ConfigFile, more: &[&str]| {
        let path = file.argument();
        let url = "http://a/api//1";
        let mut arguments = vec![
            "explain", "--config", &path, "--format", "json", "--url", url,
        ];
        arguments.extend(["--header", "X-Real-IP: 192.0.2.1"]);
        arguments.extend(more);
        output(&arguments).await
    };
    let fate = |said: &str| {
        let said = parse(said);
        let is_believed = said["forwarded"].to_string().contains("192.0.2.1");
        let outcome = said["outcome"].as_str().unwrap_or_default();
        (outcome.to_owned(), is_believed)
    };
    const OPEN: &str = r#""open": { "Address": "127.0.0.1:1" }"#;
    const STRICT: &str =
        r#""strict": { "Address": "127.0.0.1:2", "StrictPaths": true, "TrustedSenders": true }"#;
    let as_sent = ("not_found".to_owned(), false);
    let settled = ("matched".to_owned(), true);
    for (listeners, expected) in [
        (OPEN.to_owned(), &as_sent),
        (STRICT.to_owned(), &settled),
        (
            format!(
                "{STRICT}, {}",
                STRICT.replace("strict", "too").replace(":2", ":3")
            ),
            &settled,
        ),
    ] {
        let said = ask(&of(&listeners), &[]).await;
        assert_eq!(
            fate(&said.expect_success().stdout),
            *expected,
            "{listeners}"
        );
    }
    let both = of(&format!("{OPEN}, {STRICT}"));
    for (name, expected) in [("open", &as_sent), ("strict", &settled)] {
        let said = ask(&both, &["--listener", name]).await;
        assert_eq!(fate(&said.expect_success().stdout), *expected, "{name}");
    }
    for more in [&[][..], &["--listener", "other"]] {
        let rejected = ask(&both, more).await;
        assert_eq!(rejected.status.code(), Some(2));
        assert!(
            rejected.stderr.contains("`open`, `strict`"),
            "{}",
            rejected.stderr
        );
    }
}

#[tokio::test]
async fn wrong_usage_ends_with_2() {
    let file = ConfigFile::new(GOOD);
    let path = file.argument();
    for arguments in [
        vec!["nonsense"],
        vec!["run"],
        vec!["check", "--config"],
        vec!["explain", "--config", &path],
        vec!["explain", "--config", &path, "--url", "a.example/x"],
        vec![
            "explain",
            "--config",
            &path,
            "--url",
            "http://a/",
            "--header",
            "nonsense",
        ],
        vec![
            "explain",
            "--config",
            &path,
            "--url",
            "http://a/",
            "--method",
            "G E T",
        ],
    ] {
        let ended = output(&arguments).await;
        assert_eq!(
            ended.status.code(),
            Some(2),
            "{arguments:?}: {}",
            ended.stderr
        );
        assert!(!ended.stderr.is_empty());
    }
    let help = output(&["--help"]).await.expect_success().stdout;
    for command in ["run", "check", "explain", "discover", "schema"] {
        assert!(help.contains(command), "{help}");
    }
}

#[tokio::test]
async fn discover_prints_what_the_providers_say_in_the_shape_of_the_configuration() {
    let file = ConfigFile::new(GOOD);
    let found = output(&["discover", "--config", &file.argument(), "--format", "json"]).await;
    let found = parse(&found.expect_success().stdout);
    let provider = &found["providers"][0];
    assert_eq!(provider["name"], "file");
    assert_eq!(
        provider["ReverseProxy"]["Routes"]["r1"]["Match"]["Path"],
        "/api/{p}"
    );
    assert_eq!(
        provider["ReverseProxy"]["Clusters"]["c1"]["Destinations"]["d1"]["Weight"],
        0
    );
    assert!(provider["diagnostics"].is_array() && provider["health_reports"].is_array());

    // The output is valid configuration.
    let again = ConfigFile::new(&json!({ "ReverseProxy": provider["ReverseProxy"] }).to_string());
    output(&["check", "--config", &again.argument()])
        .await
        .expect_success();
}

#[tokio::test]
async fn discover_says_where_routes_lead() {
    let config = json!({ "ReverseProxy": {
        "Routes": {
            "one": { "ClusterId": "a", "Match": { "Path": "/one" } },
            "none": { "Match": { "Path": "/none" } },
            "shared": {
                "WeightedClusters": [{ "ClusterId": "a", "Weight": 9 }, { "ClusterId": "b" }],
                "Match": { "Path": "/shared" },
            },
            "keyed": {
                "PartitionedClusters": {
                    "Key": { "Header": "X-Tenant" },
                    "Partitions": [
                        { "ClusterId": "a", "LowKey": 0, "HighKey": 4 },
                        { "ClusterId": "b", "LowKey": 5, "HighKey": 7 },
                        { "ClusterId": "a", "LowKey": 8, "HighKey": 9 },
                    ],
                },
                "Match": { "Path": "/keyed" },
            },
        },
        "Clusters": { "a": {}, "b": {} },
    }});
    let file = ConfigFile::new(&config.to_string());
    let found = output(&["discover", "--config", &file.argument()]).await;
    let found = found.expect_success().stdout;
    for line in [
        "route one: /one → a\n",
        "route none: /none → nowhere\n",
        "route shared: /shared → a (weight 9), b (weight 1)\n",
        "route keyed: /keyed → a, b (by key)\n",
    ] {
        assert!(found.contains(line), "{line}{found}");
    }
}

/// The schema in the repository is the one that the program prints. To refresh it:
/// `cargo run --bin proxy-gateway -- schema > proxy-gateway/schema.json`
#[tokio::test]
async fn the_committed_schema_is_fresh() {
    let printed = output(&["schema"]).await.expect_success().stdout;
    let committed = concat!(env!("CARGO_MANIFEST_DIR"), "/schema.json");
    let committed = std::fs::read_to_string(committed).unwrap();
    assert!(
        parse(&printed) == parse(&committed),
        "refresh it: cargo run --bin proxy-gateway -- schema > proxy-gateway/schema.json"
    );
}
