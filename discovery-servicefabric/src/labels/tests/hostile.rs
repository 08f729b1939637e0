//! Tests of invalid, misspelt and hostile labels.

use super::*;

/// O07, O15, O19, O26 and what was an unexpected error in preview10.
#[test]
fn what_is_wrong_is_told_with_its_label() {
    for (key, value, code) in [
        (
            "YARP.Backend.HealthCheck.Active.Interval",
            "1S0",
            "invalid_label",
        ),
        (
            "YARP.Backend.HealthCheck.Active.Enabled",
            "on",
            "invalid_label",
        ),
        ("YARP.Backend.HttpRequest.Version", "4", "invalid_label"),
        (
            "YARP.Backend.HttpRequest.VersionPolicy",
            "Lower",
            "invalid_label",
        ),
        (
            "YARP.Backend.HttpClient.SslProtocols",
            "Tls12,Nope",
            "unknown_value",
        ),
        (
            "YARP.Backend.HttpClient.RequestHeaderEncoding",
            "utf-5",
            "unknown_encoding",
        ),
        (
            "YARP.Backend.HttpClient.WebProxy.Address",
            "nowhere",
            "invalid_address",
        ),
        ("YARP.Backend.BackendId", "a\nb", "invalid_backend_id"),
        (
            "YARP.Backend.ServiceFabric.PartitionMode",
            "Many",
            "invalid_label",
        ),
        (
            "YARP.Backend.ServiceFabric.ListenerMode",
            "Two",
            "invalid_label",
        ),
        (
            "YARP.Backend.ServiceFabric.RoleRouting",
            "On",
            "invalid_label",
        ),
        ("YARP.Destinations.Weight", "1000001", "out_of_range"),
        ("YARP.Destinations.Host", "a b", "invalid_host"),
        ("YARP.Destinations.Priority", "128", "out_of_range"),
        ("YARP.Routes.r.Order", "this is no number", "invalid_label"),
        ("YARP.Routes.r.Path", "/{", "invalid_path"),
        ("YARP.Routes.r.Hosts", "a b", "invalid_host"),
        ("YARP.Routes.r.Methods", "GETT", "invalid_method"),
        (
            "YARP.Routes.r.MatchHeaders.[7].Values",
            "a,,b",
            "missing_name",
        ),
        ("YARP.Routes.r.MatchHeaders.[7].Nme", "a", "missing_name"),
        (
            "YARP.Routes.r.MatchHeaders.first.Name",
            "a",
            "unknown_label",
        ),
        (
            "YARP.Routes.r.MatchHeaders.[0].IsCaseSensitive",
            "",
            "invalid_label",
        ),
        (
            "YARP.Routes.r.Transforms.[4].PathPrefx",
            "/a",
            "unknown_transform",
        ),
        (
            "YARP.Routes.r.Transforms. .PathPrefix",
            "/a",
            "unknown_label",
        ),
        (
            "YARP.Routes.r.Transforms.string.PathPrefix",
            "/a",
            "unknown_label",
        ),
        (
            "YARP.Routes.r.Transforms.1.PathPrefix",
            "/a",
            "unknown_label",
        ),
        ("YARP.Routes.  .Path", "/", "invalid_route_name"),
        ("YARP.Routes.FunnyChars!.Path", "/", "invalid_route_name"),
        ("YARP.Routes.'FunnyChars'.Path", "/", "invalid_route_name"),
        ("YARP.Routes.FunnyChárs.Path", "/", "invalid_route_name"),
        ("YARP.Routes.Funny+Chars.Path", "/", "invalid_route_name"),
        ("YARP.Routes..Path", "/", "invalid_route_name"),
        ("YARP.Routes..", "/", "invalid_route_name"),
        ("yarp.Routes...", "/", "invalid_route_name"),
    ] {
        let parsed = parse(&web(&[("YARP.Routes.r.Path", "/"), (key, value)]));
        let errors: Vec<_> = parsed.problems.errors().collect();
        let pointer = proxy_model::pointer_to("", key);
        let is_told = errors
            .iter()
            .any(|error| error.code == code && error.pointer == pointer);
        assert!(is_told, "{key}: {:?}", problems(&parsed));
        assert_eq!(
            parsed.config.as_deref(),
            Some(&ProxyConfig::default()),
            "{key}"
        );
    }
    // O24: an empty text among the values; no condition is compared with nothing.
    let told = rejected(&web(&[
        ("YARP.Routes.r.Path", "/"),
        ("YARP.Routes.r.MatchHeaders.[7].Name", "X"),
        (
            "YARP.Routes.r.MatchHeaders.[7].Values",
            "apples,,oranges,grapes",
        ),
    ]));
    assert_eq!(
        told,
        [
            "error at /YARP.Routes.r.MatchHeaders.[7].Values: value 1 is empty (remove the empty text; no mode compares with an empty value)"
        ]
    );
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let told = rejected(&web(&[
        ("YARP.Backend.HealthCheck.Active.Interval", "foobar"),
        ("YARP.Routes.a.Order", "x"),
        ("YARP.Routes.b!.Path", "/"),
        ("YARP.Routes.c.MatchHeaders.[0].Values", "1"),
        ("YARP.Bakend.BackendId", "x"),
    ]));
    assert_eq!(told.len(), 5, "{told:#?}");
    let told = rejected(&web(&[
        ("YARP.Routes.a.Path", "/{"),
        ("YARP.Routes.b.Path", "/"),
        ("YARP.Routes.b.Methods", "POTS"),
        ("YARP.Backend.HttpClient.RequestHeaderEncoding", "utf-5"),
    ]));
    assert_eq!(told.len(), 3, "{told:#?}");
}

/// One mistake is one problem, independent of the number of routes it would be in.
#[test]
fn a_slip_is_told_once() {
    let partitions = (0..100)
        .map(|i| named(&format!("p{i}"), &format!("n{i}"), vec![]))
        .collect();
    let told = rejected(&service(
        ServiceKind::Stateful,
        &[
            ("YARP.Backend.ServiceFabric.PartitionMode", "PerPartition"),
            ("YARP.Backend.ServiceFabric.RoleRouting", "Methods"),
            ("YARP.Routes.a.Path", "/{"),
        ],
        partitions,
    ));
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(told[0].starts_with("error at /YARP.Routes.a.Path: "));
}

/// O10, O27, O29, O30: ignored by preview10, or worse.
#[test]
fn what_means_nothing_is_a_warning() {
    for (key, suggestion) in [
        ("YARP.", None),
        ("YARP.Routes", None),
        ("YARP.Routes.", None),
        ("YARP..Routes.", None),
        ("YARP.Routes.r.MatchHeaders", None),
        ("YARP.Routes.r.MatchHeaders.", None),
        ("YARP.Routes.r...MatchHeaders", None),
        ("YARP.Routes.r.Transforms", None),
        ("YARP.Routes.r.Transform.", None),
        ("YARP.Routes.r.Hostsfoo", None),
        ("YARP.Routes.r.PathFoo", None),
        ("YARP.Routes.r.Priority", None),
        (
            "YARP.Routes.r.Host",
            Some("did you mean `YARP.Routes.r.Hosts`?"),
        ),
        (
            "YARP.Routes.r.path",
            Some("did you mean `YARP.Routes.r.Path`?"),
        ),
        (
            "YARP.Routes.r.MatchHeader.[0].Name",
            Some("did you mean `YARP.Routes.r.MatchHeaders`?"),
        ),
        ("YARP.routes.x.Path", Some("did you mean `YARP.Routes`?")),
        ("yarp.enable", Some("did you mean `YARP.Enable`?")),
        ("YARP.Backend.Quota.Burst", None),
        ("YARP.Backend.Partitioning.Count", None),
        (
            "YARP.Backend.HealthCheck.Active.Intervall",
            Some("did you mean `YARP.Backend.HealthCheck.Active.Interval`?"),
        ),
        (
            "YARP.Backend.SessionAffinity.Settings.CookieName",
            Some("settings are `CustomHeaderName`; cookies have `Cookie.*`"),
        ),
    ] {
        let parsed = parse(&web(&[("YARP.Routes.r.Path", "/"), (key, "x")]));
        let found: Vec<_> = parsed.problems.iter().collect();
        assert_eq!(found.len(), 1, "{key}: {found:?}");
        assert!(!parsed.problems.has_errors(), "{key}: {found:?}");
        assert_eq!(found[0].pointer, proxy_model::pointer_to("", key));
        assert_eq!(found[0].suggestion.as_deref(), suggestion, "{key}");
        assert_eq!(
            parsed.config.map(|config| config.routes.len()),
            Some(1),
            "{key}"
        );
    }
    let strict = LabelOptions::default().with_unknown_labels(proxy_model::Severity::Error);
    let strict = YarpLabels::new(strict);
    for key in ["YARP.Routes.r.PathFoo", "YARP.Routes.r."] {
        let parsed = strict.parse(
            "fabric:/Shop/Web",
            &web(&[("YARP.Routes.r.Path", "/"), (key, "x")]),
        );
        assert!(parsed.problems.has_errors(), "{key}");
    }
    let parsed = parse(&web(&[
        ("", "x"),
        ("NotEven.TheNamespace", "x"),
        ("Routes.", "x"),
    ]));
    assert_eq!(problems(&parsed), Vec::<String>::new());
    let parsed = parse(&web(&[(
        "YARP.Backend.HttpClient.ActivityContextHeaders",
        "Baggage",
    )]));
    assert_eq!(
        problems(&parsed),
        [
            "warning at /YARP.Backend.HttpClient.ActivityContextHeaders: which headers of a trace are passed on is decided by the program"
        ]
    );
}

#[test]
fn two_spellings_of_one_label_are_an_error() {
    for (first, second) in [
        (
            "YARP.Backend.HealthCheck.Active.Path",
            "YARP.Backend.Healthcheck.Active.Path",
        ),
        (
            "YARP.Backend.SessionAffinity.Mode",
            "YARP.Backend.SessionAffinity.Policy",
        ),
        (
            "YARP.Backend.HttpRequest.ActivityTimeout",
            "YARP.Backend.HttpRequest.Timeout",
        ),
        ("YARP.Backend.BackendId", "Yarp.Backend.BackendId"),
    ] {
        let told = rejected(&web(&[(first, "1s"), (second, "1s")]));
        assert_eq!(
            told,
            [format!(
                "error at /{second}: has the same meaning as the label `{first}`"
            )]
        );
    }
    let told = rejected(&web(&[
        ("YARP.Routes.r.Path", "/"),
        ("YARP.Routes.R.Path", "/"),
    ]));
    assert_eq!(
        told,
        ["error at /YARP.Routes.R.Path: another route has this name in another case"]
    );
}

#[test]
fn what_a_service_becomes_is_bounded() {
    let partitions: Vec<_> = (0..1000)
        .map(|i| named(&format!("p{i}"), &format!("n{i}"), vec![]))
        .collect();
    let routes: Vec<_> = (0..60).map(|i| format!("YARP.Routes.r{i}.Path")).collect();
    let mut pairs = vec![("YARP.Backend.ServiceFabric.PartitionMode", "PerPartition")];
    pairs.extend(routes.iter().map(|key| (key.as_str(), "/")));
    let large = service(ServiceKind::Stateful, &pairs, partitions.clone());
    let told = rejected(&large);
    assert_eq!(told.len(), 1);
    assert!(
        told[0].contains("1000 clusters with 0 destinations and 60000 routes")
            && told[0].contains("`Merge`"),
        "{told:?}"
    );
    let more = LabelOptions::default().with_max_generated(100_000);
    assert_eq!(
        YarpLabels::new(more)
            .parse(&large.name, &large)
            .config
            .unwrap()
            .routes
            .len(),
        60_000
    );

    // Few routes that are long.
    let long = "x".repeat(200_000);
    let told = rejected(&service(
        ServiceKind::Stateful,
        &[
            ("YARP.Backend.ServiceFabric.PartitionMode", "PerPartition"),
            ("YARP.Backend.Metadata.long", &long),
        ],
        partitions,
    ));
    assert!(told[0].contains("copied for all its parts"), "{told:?}");
}

/// Overrides are labels like others, and the parser sees both.
#[test]
fn labels_have_a_size() {
    let sized = |bytes: usize| {
        let own = "YARP.Enable".len() + "true".len() + "YARP.Routes.r.Path".len() + "/".len();
        let key = "yarp.Backend.Metadata.long";
        let long = "x".repeat(bytes - own - key.len());
        let elsewhere = "x".repeat(bytes);
        web(&[
            ("YARP.Routes.r.Path", "/"),
            (key, &long),
            ("Other", &elsewhere),
        ])
    };
    let parsed = parse(&sized(256 << 10));
    assert_eq!(problems(&parsed), Vec::<String>::new());
    assert_eq!(
        rejected(&sized((256 << 10) + 1)),
        [
            "error at /: the labels of the service have 262145 bytes, more than 262144 (properties of the service's name count, too, if they override labels)"
        ]
    );
    // A service that did not opt in is ignored.
    let mut off = sized(1 << 20);
    off.labels = Arc::new({
        let mut labels = Labels::clone(&off.labels);
        labels.insert("YARP.Enable".to_owned(), "false".to_owned());
        labels
    });
    assert_eq!(parse(&off), ParsedService::default());
}
