//! Mistakes that `check` and `run` both reject.

use testkit::peers;

use crate::common::{ConfigFile, command, output};

const GOOD: &str = r#"{ "ReverseProxy": {} }"#;

/// Mistakes of every machine, not of this one alone, are errors without `--here`, too, and are listed once.
#[tokio::test]
async fn what_no_machine_could_use_is_an_error_said_once() {
    for (section, place) in [
        (
            r#""ConsulDiscovery": { "Address": "ftp://x" }"#,
            "/ConsulDiscovery/Address",
        ),
        (
            r#""ServiceFabricDiscovery": { "Gateways": ["ftp://x"] }"#,
            "/ServiceFabricDiscovery",
        ),
        (
            r#""XdsDiscovery": { "Servers": ["ftp://x"] }"#,
            "/XdsDiscovery",
        ),
    ] {
        let file = ConfigFile::new(&GOOD.replacen('{', &format!("{{ {section},"), 1));
        let checked = output(&["check", "--config", &file.argument()]).await;
        assert_eq!(
            checked.status.code(),
            Some(1),
            "{section}: {}",
            checked.stdout
        );
        let lines = checked.stdout.lines();
        assert_eq!(
            lines.filter(|line| line.contains(place)).count(),
            1,
            "{}",
            checked.stdout
        );
        let ran = output(&["run", "--config", &file.argument()]).await;
        assert_eq!(ran.status.code(), Some(1), "{section}");
        let lines = ran.stderr.lines();
        assert_eq!(
            lines.filter(|line| line.contains(place)).count(),
            1,
            "{}",
            ran.stderr
        );
    }
    let file = ConfigFile::new(GOOD);
    let variables = [
        ("OTEL_TRACES_EXPORTER", "otlp"),
        ("OTEL_TRACES_SAMPLER", "foo"),
    ];
    let mut check = command(&["check", "--config", &file.argument()]);
    check.envs(variables);
    let checked = peers::output(check).await;
    assert_eq!(checked.status.code(), Some(1), "{}", checked.stdout);
    assert!(
        checked.stdout.contains("error at /: OTEL_TRACES_SAMPLER"),
        "{}",
        checked.stdout
    );
}
