use proxy_model::Problems;
use proxy_model::config::HeaderMatchMode;
use proxy_model::json::parse_document;

use super::*;

fn read(text: &str) -> (Section, Vec<String>) {
    let document = parse_document(text).unwrap();
    let mut problems = Problems::new();
    let section = ObjectReader::read(&document, "", &mut problems, Section::read).unwrap();
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

/// The example of YARP's documentation.
#[test]
fn the_options_of_yarp_are_read() {
    let (section, problems) = read(
        r#"{
            "DiscoveryPeriod": "00:00:05",
            "DiscoverInsecureHttpDestinations": true,
            "AlwaysSendImmediateHealthReports": true,
            "ReportReplicasHealth": true,
            "AllowStartBeforeDiscovery": true
        }"#,
    );
    assert_eq!(problems, [""; 0]);
    let options = section.options;
    assert_eq!(options.discovery_period, Duration::from_secs(5));
    assert!(options.labels.insecure_http);
    assert!(options.always_send_immediate_health_reports);
    assert!(options.report_replicas_health);
    assert!(options.allow_start_before_discovery);
}

#[test]
fn everything_can_be_said() {
    let (section, problems) = read(
        r#"{
            "Gateways": ["https://a:19080", " https://b:19080 "],
            "CallTimeout": "20s",
            "Security": {
                "ClientCertificateFile": "c.pem", "ClientKeyFile": "k.pem", "TokenFile": "t",
                "ServerNames": ["cluster.example"], "ServerCaFile": "ca.pem",
                "ServerIssuerThumbprints": ["3F 4A 9C 11 52 0B 6E 77 A0 D2 91 5E 08 C4 B3 6D 1A 2F 90 E5"]
            },
            "FastPeriod": "1s", "FullRefreshPeriod": "10m", "CacheDuration": "0s",
            "ReportServicesHealth": false, "ChangeProbe": "false",
            "EndpointSource": "replicasAndResolve", "MaxConcurrentCalls": 32,
            "StatefulReplicaSelectionMode": "PrimaryOnly",
            "PartitionMode": "Key", "PartitionKey": { "Header": "X-Tenant", "Hash": "Fnv1a64" },
            "ListenerMode": "PerListener", "RoleRouting": "Methods",
            "DefaultRoute": true, "PathPrefix": true,
            "HealthReportSource": "Blue", "Persist": "last.json",
            "ConfirmRemoval": { "Share": 0.5, "Settle": "20s" }, "UnknownLabels": "Error"
        }"#,
    );
    assert_eq!(problems, [""; 0]);
    let Section {
        options,
        connection,
    } = section;
    assert_eq!(connection.gateways, ["https://a:19080", "https://b:19080"]);
    assert_eq!(connection.call_timeout, Duration::from_secs(20));
    assert_eq!(connection.client_key_file, Some("k.pem".into()));
    assert_eq!(connection.token_file, Some("t".into()));
    assert!(matches!(
        &connection.server,
        ServerCheck::Names { names, authorities: Some(_), issuers } if names.len() == 1 && issuers.len() == 1
    ));
    assert_eq!(options.fast_period, Duration::from_secs(1));
    assert_eq!(options.full_refresh_period, Duration::from_secs(600));
    assert_eq!(options.cache_duration, Duration::ZERO);
    assert!(!options.report_services_health && !options.change_probe);
    assert_eq!(options.endpoint_source, EndpointSource::ReplicasAndResolve);
    assert_eq!(options.max_concurrent_calls, 32);
    assert_eq!(options.health_report_source, "Blue");
    assert_eq!(options.persist, Some("last.json".into()));
    let rule = ConfirmRemoval::default()
        .with_share(0.5)
        .with_settle(Duration::from_secs(20));
    assert_eq!(options.confirm_removal, Some(rule));
    let labels = options.labels;
    assert_eq!(labels.unknown_labels, Severity::Error);
    assert_eq!(labels.replica_selection, ReplicaSelection::PrimaryOnly);
    assert_eq!(labels.partition_mode, PartitionMode::Key);
    assert_eq!(labels.partition_key.header.as_deref(), Some("X-Tenant"));
    assert_eq!(labels.partition_hash, PartitionHash::Fnv1a64);
    assert_eq!(labels.listener_mode, ListenerMode::PerListener);
    assert_eq!(labels.role_routing, RoleRouting::Methods);
    assert!(labels.default_route && labels.path_prefix);
}

#[test]
fn reads_can_be_told_by_a_header() {
    for (text, mode, values) in [
        (r#"{ "Name": "X-Read" }"#, HeaderMatchMode::Exists, None),
        (
            r#"{ "Name": "X-Read", "Values": ["yes"] }"#,
            HeaderMatchMode::ExactHeader,
            Some(vec!["yes".to_owned()]),
        ),
        (
            r#"{ "Name": "X-Read", "Values": ["y"], "Mode": "HeaderPrefix", "IsCaseSensitive": true }"#,
            HeaderMatchMode::HeaderPrefix,
            Some(vec!["y".to_owned()]),
        ),
    ] {
        let text = format!(r#"{{ "RoleRouting": "Header", "ReadHeader": {text} }}"#);
        let (section, problems) = read(&text);
        assert_eq!(problems, [""; 0], "{text}");
        let labels = section.options.labels;
        assert_eq!(labels.role_routing, RoleRouting::Header);
        let header = labels.read_header.expect("it is named");
        assert_eq!(header.name, "X-Read");
        assert_eq!((header.mode, header.values), (mode, values), "{text}");
        let prefix = header.mode == HeaderMatchMode::HeaderPrefix;
        assert_eq!(header.is_case_sensitive, prefix);
    }
}

#[test]
fn the_runner_gets_what_the_section_says_of_it() {
    let (section, problems) =
        read(r#"{ "Persist": "last.json", "ConfirmRemoval": {}, "UnreadGrace": "00:05:00" }"#);
    assert_eq!(problems, [""; 0]);
    let options = section.connect().unwrap().discoverer().runner_options();
    assert_eq!(options.persist, Some("last.json".into()));
    assert_eq!(options.confirm_removal, Some(ConfirmRemoval::default()));
    assert_eq!(options.unread_grace, Duration::from_secs(300));
    let (unset, _) = read("{}");
    let unset = unset.connect().unwrap().discoverer().runner_options();
    assert_eq!(unset.unread_grace, Duration::from_secs(1800));
}

#[test]
fn what_is_wrong_is_named_where_it_is() {
    for (text, expected) in [
        (
            r#"{ "DiscoveryPeriot": "5s" }"#,
            "unknown_key /DiscoveryPeriot",
        ),
        (
            r#"{ "DiscoveryPeriod": "0s" }"#,
            "out_of_range /DiscoveryPeriod",
        ),
        (
            r#"{ "DiscoveryPeriod": "2d" }"#,
            "out_of_range /DiscoveryPeriod",
        ),
        (
            r#"{ "FastPeriod": "1m" }"#,
            "ineffective_period /FastPeriod",
        ),
        (
            r#"{ "MaxConcurrentCalls": 0 }"#,
            "out_of_range /MaxConcurrentCalls",
        ),
        (
            r#"{ "HealthReportSource": "System.Me" }"#,
            "invalid_source /HealthReportSource",
        ),
        (
            r#"{ "ConfirmRemoval": { "Share": 0 } }"#,
            "out_of_range /ConfirmRemoval/Share",
        ),
        (
            r#"{ "ReadHeader": { "Values": ["a"] } }"#,
            "missing_name /ReadHeader/Name",
        ),
        (
            r#"{ "ReadHeader": { "Name": "a", "Mode": "Contains" } }"#,
            "invalid_values /ReadHeader/Values",
        ),
        (
            r#"{ "ReadHeader": { "Name": "a", "Values": ["b"], "Mode": "NotExists" } }"#,
            "invalid_values /ReadHeader/Values",
        ),
        (
            r#"{ "UnknownLabels": "Off" }"#,
            "unknown_value /UnknownLabels",
        ),
        (r#"{ "Gateways": [] }"#, "no_gateways /Gateways"),
        (
            r#"{ "Gateways": ["http://a", "b:19080"] }"#,
            "invalid_url /Gateways/1",
        ),
        (
            r#"{ "PartitionMode": "Both" }"#,
            "unknown_value /PartitionMode",
        ),
        (
            r#"{ "PartitionKey": {} }"#,
            "conflicting_key_sources /PartitionKey",
        ),
        (
            r#"{ "PartitionKey": { "Header": "a", "RouteValue": "b" } }"#,
            "conflicting_key_sources /PartitionKey",
        ),
        (
            r#"{ "Security": { "ClientKeyFile": "k" } }"#,
            "missing_certificate /Security/ClientKeyFile",
        ),
        (
            r#"{ "Security": { "ServerThumbprints": ["12"] } }"#,
            "invalid_thumbprint /Security/ServerThumbprints/0",
        ),
        (
            r#"{ "Security": { "ServerCaFile": "a", "DangerousAcceptAnyServerCertificate": true } }"#,
            "conflicting_server_checks /Security/ServerCaFile",
        ),
        (
            r#"{ "Security": { "ServerIssuerThumbprints": ["3f4a9c11520b6e77a0d2915e08c4b36d1a2f90e5"] } }"#,
            "missing_server_names /Security/ServerIssuerThumbprints",
        ),
        (
            r#"{ "Security": { "Password": "x" } }"#,
            "unknown_key /Security/Password",
        ),
    ] {
        assert_eq!(read(text).1, [expected], "{text}");
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let (section, _) = read(
        r#"{ "Gateways": ["https://a:19080"], "Security": { "ClientCertificateFile": "/nowhere/c.pem" } }"#,
    );
    let error = section.connect().unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("/nowhere/c.pem"), "{cause}");
}
