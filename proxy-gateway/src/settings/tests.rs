use proxy_model::Severity;
use proxy_model::json::parse_document;
use proxy_runtime::server::ListenerRules;

use super::*;

fn read(text: &str) -> (Settings, Vec<(Severity, String, String)>) {
    let mut problems = Problems::new();
    let settings = Settings::read(&parse_document(text).unwrap(), &mut problems);
    let found = problems
        .iter()
        .map(|p| (p.severity, p.pointer.clone(), p.code.to_string()))
        .collect();
    (settings, found)
}

fn error(pointer: &str, code: &str) -> (Severity, String, String) {
    (Severity::Error, pointer.to_owned(), code.to_owned())
}

#[test]
fn name_servers_are_addresses_that_somebody_asks() {
    let pointer = "/Server/Resolver/Servers";
    for (text, expected) in [
        (
            r#"{ "Servers": ["ns.example"] }"#,
            Some(error(&format!("{pointer}/0"), "invalid_name_server")),
        ),
        (
            r#"{ "Servers": ["::1", 53] }"#,
            Some(error(&format!("{pointer}/1"), "invalid_name_server")),
        ),
        (
            r#"{ "Kind": "System", "Servers": ["::1"] }"#,
            Some(error(pointer, "invalid_name_servers")),
        ),
        (
            r#"{ "Servers": ["::1","::1","::1","::1","::1","::1","::1","::1","::1"] }"#,
            Some(error(pointer, "invalid_name_servers")),
        ),
        (
            r#"{ "Servers": ["::1","::1","::1","::1","::1","::1","::1","::1"] }"#,
            None,
        ),
        (r#"{ "Kind": "system", "Servers": [] }"#, None),
    ] {
        let document = format!(r#"{{ "Server": {{ "Resolver": {text} }} }}"#);
        let (_, problems) = read(&document);
        assert_eq!(problems, Vec::from_iter(expected), "{text}");
    }
    let (_, problems) = read(r#"{ "Server": { "Resolver": { "Kind": "nscd" } } }"#);
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].1, "/Server/Resolver/Kind");
}

#[test]
fn an_empty_document_listens_on_loopback_only() {
    let (settings, problems) = read("{}");
    assert_eq!(problems, []);
    assert_eq!(settings.listeners, [Listener::default()]);
    assert!(settings.listeners[0].address.ip().is_loopback());
    assert!(settings.admin.unwrap().address.ip().is_loopback());
    assert_eq!(settings.server.drain_timeout, Duration::from_secs(30));
}

#[test]
fn everything_can_be_said() {
    let (settings, problems) = read(
        r#"{
            // Comments are fine.
            "Listeners": {
                "web": { "Address": "0.0.0.0:80", "StrictPaths": true, "TrustedSenders": true },
                "secure": {
                    "Address": "[::]:443",
                    "Tls": { "Certificates": [
                        { "CertificateFile": "a.pem", "KeyFile": "a.key" },
                        { "CertificateFile": "b.pem", "KeyFile": "b.key" },
                    ] }
                }
            },
            "Admin": { "Address": "localhost:9000" },
            "Telemetry": {
                "LogFilter": "debug", "LogFormat": "JSON",
                "AccessLog": { "Format": "json", "File": "access.log" }
            },
            "Server": {
                "Workers": 3, "DrainTimeout": "00:00:05", "ReadinessDelay": "2s", "Zone": "a", "Handover": "h.sock",
                "Resolver": { "Kind": "Dns", "Servers": ["10.0.0.2", "127.0.0.1:8600"] },
                "Limits": { "HeaderBytes": 16384, "KeepAlive": "20s", "BodyBytes": 1000 }
            },
            "ReverseProxy": { "Routes": "the provider judges this" }
        }"#,
    );
    assert_eq!(problems, []);
    let web = &settings.listeners[0];
    let rules = ListenerRules::default();
    let mut stricter = rules;
    stricter.strict_paths = true;
    stricter.trusts_senders = true;
    assert_eq!(web.rules, stricter);
    let secure = &settings.listeners[1];
    assert_eq!(secure.rules, rules);
    assert_eq!(secure.name, "secure");
    let certificates = &secure.tls.as_ref().unwrap().certificates;
    assert_eq!(certificates.len(), 2);
    assert_eq!(certificates[1].key_file.as_os_str(), "b.key");
    assert_eq!(
        settings.admin.unwrap().address.to_string(),
        "127.0.0.1:9000"
    );
    let access_log = settings.telemetry.access_log.unwrap();
    assert_eq!(access_log.format, LineFormat::Known(LogFormat::Json));
    assert_eq!(settings.telemetry.log_format, LogFormat::Json);
    assert_eq!(settings.server.workers, Some(3));
    assert_eq!(settings.server.readiness_delay, Duration::from_secs(2));
    assert_eq!(settings.server.zone.as_deref(), Some("a"));
    if cfg!(target_os = "linux") {
        assert_eq!(settings.server.handover, Some(PathBuf::from("h.sock")));
    }
    assert_eq!(settings.server.limits.keep_alive, Duration::from_secs(20));
    assert_eq!(settings.server.limits.body_bytes, Some(1000));
}

#[test]
fn every_mistake_is_named() {
    let (_, problems) = read(
        r#"{
            "Listeners": {
                "a": {},
                "b": { "Address": "example.com:80" },
                "c": { "Address": "127.0.0.1:7000", "Tls": {} },
                "d": { "Address": "127.0.0.1:7000" },
                "e": { "Address": "127.0.0.1:9901" },
                "f": { "Address": "127.0.0.1:7001", "Tls": { "Certificates": [ { "KeyFile": "k" } ] } }
            },
            "Server": { "Workers": 0 },
            "Listners": {},
            "Policys": {},
            "ConsulDiscovery": { "Adress": "x" }
        }"#,
    );
    let expected = [
        error("/Listners", "unknown_section"),
        error("/Policys", "unknown_section"),
        error("/ConsulDiscovery/Adress", "unknown_key"),
        error("/Listeners/a", "missing_address"),
        error("/Listeners/b/Address", "invalid_address"),
        error("/Listeners/c/Tls", "missing_certificate"),
        error("/Listeners/f/Tls/Certificates/0", "missing_file"),
        error("/Listeners/d/Address", "address_taken"),
        error("/Listeners/e/Address", "address_taken"),
    ];
    for wanted in expected {
        assert!(
            problems.contains(&wanted),
            "{wanted:?} is not among {problems:#?}"
        );
    }
    assert!(
        problems
            .iter()
            .any(|(_, pointer, _)| pointer == "/Server/Workers")
    );
}

#[test]
fn addresses_that_include_each_other_are_named() {
    for (first, second, admin, expected) in [
        ("0.0.0.0:80", "127.0.0.1:80", "127.0.0.1:81", Some("b")),
        ("[::]:80", "127.0.0.1:80", "127.0.0.1:81", Some("b")),
        ("[::]:80", "0.0.0.0:80", "127.0.0.1:81", None),
        ("127.0.0.1:80", "127.0.0.2:80", "127.0.0.1:81", None),
        ("0.0.0.0:81", "127.0.0.2:80", "127.0.0.1:81", Some("a")),
        // The admin page has no socket for IPv4 beside one for IPv6.
        ("0.0.0.0:81", "127.0.0.2:80", "[::]:81", Some("a")),
        ("127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", None),
    ] {
        let text = format!(
            r#"{{ "Listeners": {{ "a": {{ "Address": "{first}" }}, "b": {{ "Address": "{second}" }} }},
                 "Admin": {{ "Address": "{admin}", "TokenFile": "token" }} }}"#
        );
        let (_, problems) = read(&text);
        let expected =
            expected.map(|name| error(&format!("/Listeners/{name}/Address"), "address_taken"));
        assert_eq!(problems, Vec::from_iter(expected), "{text}");
    }
}

#[test]
fn sections_of_other_programs_are_left_alone() {
    let (_, problems) = read(
        r#"{
            "Logging": { "LogLevel": { "Default": "Information" } },
            "AllowedHosts": "*",
            "ConnectionStrings": {},
            "MyApplication": 1
        }"#,
    );
    assert_eq!(problems, []);
    let (_, problems) = read(r#"{ "Kestrel": {}, "AllowedHosts": "a.example" }"#);
    assert!(
        problems
            .iter()
            .all(|(severity, ..)| *severity == Severity::Warning)
    );
    assert_eq!(problems.len(), 2);
}

#[test]
fn sections_that_look_like_ours_and_are_others_are_named() {
    let (_, problems) = read(
        r#"{
            "ReverseProxy2": {}, "ReverseProxies": {}, "ReverseProxy_dev": {}, "Servers": [], "Service": {},
            "Logging:LogLevel": {}
        }"#,
    );
    let warning =
        |pointer: &str, code: &str| (Severity::Warning, pointer.to_owned(), code.to_owned());
    assert_eq!(
        problems,
        [
            warning("/ReverseProxy2", "unknown_section"),
            warning("/ReverseProxies", "unknown_section"),
            warning("/ReverseProxy_dev", "unknown_section"),
            warning("/Servers", "unknown_section"),
        ]
    );
}

#[test]
fn certificates_of_clients_can_be_asked_for_by_name() {
    use super::tls::{Clients, Handshakes};
    let document = |tls: &str| {
        format!(
            r#"{{ "Listeners": {{ "s": {{ "Address": "[::]:443", "Tls": {{
                "Certificates": [{{ "CertificateFile": "a.pem", "KeyFile": "a.key" }}], {tls}
            }} }} }} }}"#
        )
    };
    let (settings, problems) = read(&document(
        r#""ClientCertificateMode": "AllowCertificate", "ClientCaFile": "ca.pem", "Sni": {
            "Admin.example": { "ClientCertificateMode": "requirecertificate", "MinVersion": "Tls13" },
            "*.bücher.example": { "ClientCertificateMode": "NoCertificate" },
            "own.example": { "ClientCaFile": "own.pem" },
            "XN--BCHER-KVA.example": { "MinVersion": "Tls13" },
        }"#,
    ));
    assert_eq!(problems, []);
    let tls = settings.listeners[0].tls.as_ref().unwrap();
    let optional = |file: &str| Handshakes {
        clients: Clients::Optional(file.into()),
        requires_tls13: false,
    };
    assert_eq!(tls.default, optional("ca.pem"));
    let admin = Handshakes {
        clients: Clients::Required("ca.pem".into()),
        requires_tls13: true,
    };
    let expected = [
        ("admin.example".to_owned(), admin),
        ("*.xn--bcher-kva.example".to_owned(), Handshakes::default()),
        ("own.example".to_owned(), optional("own.pem")),
        (
            "xn--bcher-kva.example".to_owned(),
            Handshakes {
                requires_tls13: true,
                ..optional("ca.pem")
            },
        ),
    ];
    assert_eq!(tls.by_name, expected);

    let place = "/Listeners/s/Tls";
    for (tls, expected) in [
        (
            r#""ClientCertificateMode": "RequireCertificate""#,
            error(place, "missing_file"),
        ),
        (
            r#""ClientCertificateMode": "DelayCertificate", "ClientCaFile": "ca.pem""#,
            error(
                &format!("{place}/ClientCertificateMode"),
                "unsupported_value",
            ),
        ),
        (
            r#""Sni": { "a.example": { "ClientCertificateMode": "AllowCertificate" } }"#,
            error(&format!("{place}/Sni/a.example"), "missing_file"),
        ),
        (
            r#""Sni": { "*": { "MinVersion": "Tls13" } }"#,
            error(&format!("{place}/Sni/*"), "invalid_server_name"),
        ),
        (
            r#""Sni": { "*.bücher.example": {}, "*.xn--bcher-kva.example": { "MinVersion": "Tls13" } }"#,
            error(
                &format!("{place}/Sni/*.xn--bcher-kva.example"),
                "duplicate_server_name",
            ),
        ),
        (
            r#""Sni": { "a.example:443": { "MinVersion": "Tls13" } }"#,
            error(&format!("{place}/Sni/a.example:443"), "invalid_server_name"),
        ),
        (
            r#""ClientCertificateMode": "NoCertificate", "ClientCaFile": "ca.pem""#,
            (
                Severity::Warning,
                format!("{place}/ClientCaFile"),
                "no_effect".to_owned(),
            ),
        ),
        (
            r#""ClientCaFile": "ca.pem""#,
            (
                Severity::Warning,
                format!("{place}/ClientCaFile"),
                "no_effect".to_owned(),
            ),
        ),
    ] {
        let (_, problems) = read(&document(tls));
        assert_eq!(problems, [expected], "{tls}");
    }
    let (_, problems) = read(&document(r#""MinVersion": "Tls11""#));
    assert_eq!(problems[0].1, format!("{place}/MinVersion"));
}

#[test]
fn names_of_destinations_may_become_several() {
    let resolver = |text: &str| {
        let document = format!(r#"{{ "Server": {{ "DnsDestinationResolver": {text} }} }}"#);
        let (settings, problems) = read(&document);
        let resolver = settings.server.destination_resolver;
        (resolver.map(|resolver| format!("{resolver:?}")), problems)
    };
    let (read, problems) = resolver("{}");
    assert_eq!(problems, []);
    assert_eq!(
        read.unwrap(),
        "DestinationResolver { refresh: 300s, family: Any }"
    );
    let (read, problems) =
        resolver(r#"{ "RefreshPeriod": "00:00:10", "AddressFamily": "internetworkv6" }"#);
    assert_eq!(problems, []);
    assert_eq!(
        read.unwrap(),
        "DestinationResolver { refresh: 10s, family: V6 }"
    );
    let (read, problems) = resolver(r#"{ "Enabled": false }"#);
    assert_eq!((read, problems), (None, vec![]));
    let place = "/Server/DnsDestinationResolver";
    let (_, problems) = resolver(r#"{ "RefreshPeriod": "250ms" }"#);
    assert_eq!(
        problems,
        [error(&format!("{place}/RefreshPeriod"), "out_of_range")]
    );
    let (_, problems) = resolver(r#"{ "AddressFamily": "Unix" }"#);
    assert_eq!(problems[0].1, format!("{place}/AddressFamily"));
}
