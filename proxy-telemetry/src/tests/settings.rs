//! Variables and what they mean.

use proxy_runtime::trace::Decision;

use super::variables;
use crate::Settings;

fn read(all: &[(&str, &str)]) -> Result<Option<Settings>, String> {
    let settings = Settings::from_variables("shop", "1", &variables(all));
    settings.map_err(|error| error.to_string())
}

#[test]
fn nothing_is_exported_unless_it_is_asked_for() {
    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
    type Case<'c> = (&'c [(&'c str, &'c str)], Option<&'c str>);
    let cases: [Case<'_>; 10] = [
        (&[], None),
        (&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")], None),
        (&[ENDPOINT], Some("http://c:4318/v1/traces")),
        (&[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")], None),
        (&[ENDPOINT, ("OTEL_SDK_DISABLED", "TRUE")], None),
        (&[ENDPOINT, ("OTEL_TRACES_SAMPLER", "always_off")], None),
        (
            &[("OTEL_TRACES_EXPORTER", "otlp")],
            Some("http://localhost:4318/v1/traces"),
        ),
        // The one for traces is taken as it is.
        (
            &[
                ENDPOINT,
                ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t/x"),
            ],
            Some("http://t/x"),
        ),
        (
            &[ENDPOINT, ("OTEL_TRACES_SAMPLER", "parentbased_always_off")],
            Some("http://c:4318/v1/traces"),
        ),
        (
            &[ENDPOINT, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
            Some("http://c:4318/opentelemetry.proto.collector.trace.v1.TraceService/Export"),
        ),
    ];
    for (all, endpoint) in cases {
        let settings = read(all).unwrap();
        let found = settings.as_ref().map(Settings::endpoint);
        assert_eq!(found, endpoint, "{all:?}");
    }
}

#[test]
fn mistakes_are_named_together_and_secrets_are_not_repeated() {
    let error = read(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "good=1,s3cr3t"),
        ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/key.pem"),
        ("OTEL_TRACES_SAMPLER", "sometimes"),
        ("OTEL_TRACES_SAMPLER_ARG", "2"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "-1"),
    ])
    .unwrap_err();
    for part in [
        "OTEL_EXPORTER_OTLP_ENDPOINT: `collector:4318/v1/traces` is not a URL",
        "`http/json` is not `http/protobuf` or `grpc`",
        "OTEL_EXPORTER_OTLP_HEADERS: part 2",
        "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE is missing",
        "`sometimes` is not `always_on`",
        "OTEL_TRACES_SAMPLER_ARG: `2` is not a number from 0 to 1",
        "OTEL_BSP_MAX_QUEUE_SIZE: `-1` is not a number from 1 to 1000000",
    ] {
        assert!(error.contains(part), "{part}\n{error}");
    }
    assert!(!error.contains("s3cr3t"), "{error}");
}

#[test]
fn samplers_decide_as_their_names_say() {
    use Decision::{Drop, Ignore, Record};
    let low = [0; 16];
    let high = [0xff; 16];
    // Decisions about a low and a high id without a caller, and about callers that record and do not.
    let cases = [
        ("always_on", "1", [Record, Record, Record, Record]),
        ("parentbased_always_on", "1", [Record, Record, Record, Drop]),
        (
            "parentbased_always_off",
            "1",
            [Ignore, Ignore, Record, Drop],
        ),
        ("traceidratio", "0.5", [Record, Drop, Drop, Drop]),
        (
            "parentbased_traceidratio",
            "0.5",
            [Record, Drop, Record, Drop],
        ),
        ("parentbased_traceidratio", "0", [Drop, Drop, Record, Drop]),
        (
            "parentbased_traceidratio",
            "1",
            [Record, Record, Record, Drop],
        ),
    ];
    for (name, ratio, expected) in cases {
        let settings = read(&[
            ("OTEL_TRACES_EXPORTER", "otlp"),
            ("OTEL_TRACES_SAMPLER", name),
            ("OTEL_TRACES_SAMPLER_ARG", ratio),
        ]);
        let sampler = settings.unwrap().unwrap().sampler;
        let found = [
            sampler.decide(low, None),
            sampler.decide(high, None),
            sampler.decide(high, Some(true)),
            sampler.decide(high, Some(false)),
        ];
        assert_eq!(found, expected, "{name} {ratio}");
    }
}
