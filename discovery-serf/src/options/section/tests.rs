use proxy_model::Problems;
use proxy_model::json::parse_document;

use super::*;
use crate::generate::{GenerateOptions, HealthOptions, WeightStrategy};

fn read_all(text: &str) -> (Section, Problems) {
    let document = parse_document(text).unwrap();
    let mut problems = Problems::new();
    let section = ObjectReader::read(&document, "", &mut problems, Section::read).unwrap();
    (section, problems)
}

fn read(text: &str) -> (Section, Vec<String>) {
    let (section, problems) = read_all(text);
    let found = problems
        .iter()
        .map(|p| format!("{} {}", p.code, p.pointer))
        .collect();
    (section, found)
}

#[test]
fn an_empty_section_is_the_default() {
    assert_eq!(read("{}"), (Section::default(), Vec::new()));
}

#[test]
fn everything_can_be_said() {
    let (section, problems) = read(
        r#"{
            "Agents": ["10.0.0.1", " [::1]:17373 ", "serf.internal:7374"],
            "AuthKeyFile": "serf.key",
            "ReconcileInterval": "00:00:10", "Debounce": "0s", "DebounceMax": "500ms",
            "ConnectTimeout": "1s", "RequestTimeout": "20s", "MaxFrameSize": 1048576,
            "HoldDown": { "Share": 0.5, "Settle": "1m", "Recheck": "5s" },
            "PrefilterMembers": true, "AllowStartBeforeDiscovery": true, "Persist": "last.json",
            "AllowedServices": ["orders", " payments "],
            "AllowedNetworks": ["10.1.2.3/8", "fd00::/8", "127.0.0.1"],
            "KeepEmptyServices": true, "LegacyBackend": false,
            "LoadBalancingPolicy": "LeastRequests",
            "HealthCheck": { "Enabled": false, "Interval": "5s", "Timeout": "3s", "Path": "/up" },
            "WeightStrategy": "duplicate",
            "VersionHeader": "X-Version", "RegionHeader": "X-Region", "InformationalTags": false
        }"#,
    );
    assert_eq!(problems, [""; 0]);
    let seconds = Duration::from_secs;
    let options = section.options;
    let hold = HoldOptions::default()
        .with_share(0.5)
        .with_settle(seconds(60))
        .with_recheck(seconds(5));
    let mut expected = SerfOptions::of(["10.0.0.1:7373", "[::1]:17373", "serf.internal:7374"])
        .with_auth_key_file("serf.key".into())
        .with_reconcile_interval(seconds(10))
        .with_debounce(Duration::ZERO)
        .with_debounce_max(Duration::from_millis(500))
        .with_connect_timeout(seconds(1))
        .with_request_timeout(seconds(20))
        .with_max_frame(1 << 20)
        .with_hold(hold)
        .with_prefilter_members(true)
        .with_allow_start_before_discovery(true)
        .with_persist("last.json".into());
    let networks = ["10.0.0.0/8", "fd00::/8", "127.0.0.1/32"];
    expected.catalog = CatalogOptions::default()
        .with_allowed_services(["orders", "payments"])
        .with_allowed_networks(networks.map(|net| net.parse().unwrap()))
        .with_keep_empty_services(true)
        .with_legacy_backend(false);
    let health = HealthOptions::default()
        .with_enabled(false)
        .with_interval(seconds(5))
        .with_timeout(seconds(3))
        .with_path("/up");
    expected.generate = GenerateOptions::default()
        .with_load_balancing_policy("LeastRequests")
        .with_health(health)
        .with_weights(WeightStrategy::Duplicate)
        .with_version_header("X-Version")
        .with_region_header("X-Region")
        .with_informational_tags(false);
    assert_eq!(options, expected);
}

#[test]
fn what_is_wrong_is_named_where_it_is() {
    for (text, expected) in [
        (r#"{ "Agent": ["a"] }"#, "unknown_key /Agent"),
        (r#"{ "Agents": "a:1" }"#, "wrong_type /Agents"),
        (r#"{ "Agents": [] }"#, "no_agents /Agents"),
        (r#"{ "Agents": ["a", "::1"] }"#, "invalid_address /Agents/1"),
        (
            r#"{ "Agents": ["a", "a:7373"] }"#,
            "duplicate_agent /Agents/1",
        ),
        (r#"{ "AuthKey": " " }"#, "empty_key /AuthKey"),
        (r#"{ "AuthKeyFile": "" }"#, "empty_path /AuthKeyFile"),
        (
            r#"{ "AuthKey": "a", "AuthKeyFile": "b" }"#,
            "conflicting_keys /AuthKey",
        ),
        (
            r#"{ "ReconcileInterval": "0s" }"#,
            "out_of_range /ReconcileInterval",
        ),
        (
            r#"{ "ReconcileInterval": "2d" }"#,
            "out_of_range /ReconcileInterval",
        ),
        (
            r#"{ "Debounce": "2s" }"#,
            "ineffective_setting /DebounceMax",
        ),
        (
            r#"{ "ConnectTimeout": "0s" }"#,
            "out_of_range /ConnectTimeout",
        ),
        (
            r#"{ "RequestTimeout": "soon" }"#,
            "invalid_time_span /RequestTimeout",
        ),
        (r#"{ "MaxFrameSize": 10 }"#, "out_of_range /MaxFrameSize"),
        (
            r#"{ "HoldDown": { "Share": 0 } }"#,
            "out_of_range /HoldDown/Share",
        ),
        (
            r#"{ "HoldDown": { "Share": 1.5 } }"#,
            "out_of_range /HoldDown/Share",
        ),
        (
            r#"{ "HoldDown": { "Recheck": "0s" } }"#,
            "out_of_range /HoldDown/Recheck",
        ),
        (
            r#"{ "HoldDown": { "Period": "1s" } }"#,
            "unknown_key /HoldDown/Period",
        ),
        (
            r#"{ "PrefilterMembers": true, "LegacyBackend": true }"#,
            "ineffective_setting /LegacyBackend",
        ),
        (
            r#"{ "AllowedServices": [] }"#,
            "nothing_allowed /AllowedServices",
        ),
        (
            r#"{ "AllowedServices": ["a", " "] }"#,
            "empty_name /AllowedServices/1",
        ),
        (
            r#"{ "AllowedNetworks": [] }"#,
            "nothing_allowed /AllowedNetworks",
        ),
        (
            r#"{ "AllowedNetworks": ["10.0.0.0/8", "10.0.0.0/33"] }"#,
            "invalid_network /AllowedNetworks/1",
        ),
        (
            r#"{ "LoadBalancingPolicy": "" }"#,
            "empty_name /LoadBalancingPolicy",
        ),
        (
            r#"{ "HealthCheck": { "Interval": "1ms" } }"#,
            "out_of_range /HealthCheck/Interval",
        ),
        (
            r#"{ "HealthCheck": { "Path": "/a b" } }"#,
            "invalid_path /HealthCheck/Path",
        ),
        (
            r#"{ "HealthCheck": { "Path": " " } }"#,
            "invalid_path /HealthCheck/Path",
        ),
        (
            r#"{ "HealthCheck": { "Path": "/up?full=1" } }"#,
            "invalid_path /HealthCheck/Path",
        ),
        (
            r#"{ "WeightStrategy": "Random" }"#,
            "unknown_value /WeightStrategy",
        ),
        (
            r#"{ "VersionHeader": "X Version" }"#,
            "invalid_header /VersionHeader",
        ),
        (
            r#"{ "VersionHeader": "X-A", "RegionHeader": "x-a" }"#,
            "conflicting_headers /RegionHeader",
        ),
    ] {
        assert_eq!(read(text).1, [expected], "{text}");
    }
}

#[test]
fn problems_say_what_to_write() {
    for (text, suggestion) in [
        (r#"{ "Agents": ["::1"] }"#, "write `[::1]:7373`"),
        (r#"{ "Agents": "a:1" }"#, "write `[\"a:1\"]`"),
        (r#"{ "Agnets": ["a"] }"#, "did you mean `Agents`?"),
        (
            r#"{ "HealthCheck": { "Path": "/a b" } }"#,
            "write a path like `/health`",
        ),
    ] {
        let problems = read_all(text).1;
        let found = problems.iter().next().unwrap().suggestion.clone();
        assert_eq!(found.as_deref(), Some(suggestion), "{text}");
    }
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let text = r#"{ "Agents": ["a:0", "b c"], "Debounce": "-1s", "WeightStrategy": 3, "X": 1 }"#;
    let (section, problems) = read(text);
    assert_eq!(problems.len(), 5, "{problems:?}");
    assert_eq!(section, Section::default());
}

#[test]
fn the_key_shows_nowhere() {
    let text = r#"{ "AuthKey": "sekrit", "AuthKeyFile": "key", "Agents": [] }"#;
    let (section, problems) = read_all(text);
    assert_eq!(section.options.auth_key, Some(AuthKey::from("sekrit")));
    assert!(!format!("{section:?} {problems} {problems:?}").contains("sekrit"));
}

#[test]
fn the_key_file_is_looked_at_when_connecting() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    let mut section = Section::default();
    section.options.auth_key_file = Some(path.clone());
    let error = section.connect().unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains(&*path.to_string_lossy()), "{cause}");
    std::fs::write(&path, "sekrit\n").unwrap();
    assert!(section.connect().is_ok());
}

#[test]
fn the_runner_gets_what_the_section_says_of_it() {
    let (section, problems) = read(
        r#"{ "Persist": "last.json", "ReconcileInterval": "5s", "Debounce": "10ms", "DebounceMax": "2s" }"#,
    );
    assert_eq!(problems, [""; 0]);
    let options = section.connect().unwrap().runner_options();
    assert_eq!(options.persist, Some("last.json".into()));
    assert_eq!(options.interval, Duration::from_secs(5));
    assert_eq!(options.debounce, Duration::from_millis(10));
    assert_eq!(options.debounce_max, Duration::from_secs(2));
}
