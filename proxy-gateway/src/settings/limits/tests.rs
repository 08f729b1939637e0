use proxy_model::Problems;
use proxy_model::json::parse_document;
use serde_json::{Value, json};

use super::*;

/// Returns the limits, and the problems with their places.
fn read_limits(section: &Value) -> (Limits, Vec<String>) {
    let mut problems = Problems::new();
    let document = parse_document(&section.to_string()).unwrap();
    let limits = ObjectReader::read(&document, "", &mut problems, read).unwrap();
    let problems = problems.iter();
    let problems = problems.map(|problem| format!("{} {}", problem.code, problem.pointer));
    (limits, problems.collect())
}

/// Returns the section with only `value` at `pointer`.
fn with(pointer: &str, value: &Value) -> Value {
    let keys = pointer.rsplit('/').filter(|key| !key.is_empty());
    keys.fold(value.clone(), |value, key| json!({ key: value }))
}

/// Returns each field with its value on a line, including those of nested structs.
fn fields(limits: &Limits) -> Vec<String> {
    let shown = format!("{limits:#?}");
    let lines = shown.lines().map(|line| line.trim().trim_end_matches(','));
    let fields = lines.filter(|line| line.contains(": ") && !line.ends_with(['{', '(']));
    fields.map(str::to_owned).collect()
}

#[test]
fn nothing_said_is_as_the_server_has_it() {
    let nothing = json!({ "DataRate": {}, "Http2": {} });
    for section in [json!({}), nothing] {
        assert_eq!(read_limits(&section), (Limits::default(), vec![]));
    }
}

/// Every limit of the server can be configured.
#[test]
fn every_limit_can_be_said() {
    let section = json!({
        "HeaderBytes": 16384,
        "HeaderFields": 50,
        "RequestLine": 4096,
        "HeaderTimeout": "5s",
        "KeepAlive": "20s",
        "ClosingGrace": "0s",
        "RequestsPerConnection": "1000000000000",
        "ConnectionAge": "00:10:00",
        "Connections": 1000,
        "ConnectionsPerAddress": 20,
        "MemoryBytes": 5_000_000_000_u64,
        "BodyBytes": 5_000_000_000_u64,
        "DataRate": { "BytesPerSecond": 1000, "Window": "10s" },
        "BufferBytes": 32768,
        "TlsHandshakeTimeout": "3s",
        "Http2": {
            "ConcurrentStreams": 250,
            "StreamWindow": 65535,
            "ConnectionWindow": 2_147_483_647,
            "PendingResets": 10,
            "ResetsPerSecond": 50,
            "ResetsPerConnection": 1000,
            "PingsPerSecond": 7,
            "SettingsPerSecond": 5,
            "OtherFramesPerSecond": 3,
            "ErrorResets": 30,
        },
    });
    let (limits, problems) = read_limits(&section);
    assert_eq!(problems, [""; 0]);
    let mut http2 = Http2Limits::default();
    http2.concurrent_streams = 250;
    http2.stream_window = 65_535;
    http2.connection_window = 2_147_483_647;
    http2.pending_resets = 10;
    http2.resets_per_second = 50;
    http2.resets_per_connection = 1000;
    http2.pings_per_second = 7;
    http2.settings_per_second = 5;
    http2.other_frames_per_second = 3;
    http2.error_resets = 30;
    let mut expected = Limits::default();
    expected.header_bytes = 16_384;
    expected.header_fields = 50;
    expected.request_line = 4096;
    expected.header_timeout = Duration::from_secs(5);
    expected.keep_alive = Duration::from_secs(20);
    expected.closing_grace = Duration::ZERO;
    expected.requests_per_connection = 1_000_000_000_000;
    expected.connection_age = Duration::from_secs(600);
    expected.connections = Some(1000);
    expected.connections_per_address = Some(20);
    expected.memory_bytes = Some(5_000_000_000);
    expected.body_bytes = Some(5_000_000_000);
    expected.data_rate = Some(DataRate::new(1000, Duration::from_secs(10)));
    expected.buffer_bytes = 32_768;
    expected.tls_handshake_timeout = Duration::from_secs(3);
    expected.http2 = http2;
    assert_eq!(limits, expected);

    let (said, mut unsaid) = (fields(&limits), fields(&Limits::default()));
    assert!(
        unsaid.contains(&"error_resets: 100".to_owned()),
        "{unsaid:?}"
    );
    unsaid.retain(|field| said.contains(field));
    assert_eq!(unsaid, [""; 0], "no key sets them");
}

#[test]
fn what_may_last_for_ever_is_infinite_and_a_pace_can_be_switched_off() {
    let section = json!({
        "KeepAlive": "Infinite",
        "ConnectionAge": " infinite ",
        "DataRate": { "Enabled": false, "BytesPerSecond": 500 },
    });
    let mut expected = Limits::default();
    expected.keep_alive = Duration::MAX;
    expected.connection_age = Duration::MAX;
    expected.data_rate = None;
    assert_eq!(read_limits(&section), (expected, vec![]));
}

/// The minimum and maximum of the schema are accepted, and values beyond them are not.
#[test]
fn numbers_have_the_ranges_of_the_schema() {
    let schema: Value = serde_json::from_str(include_str!("../../../schema.json")).unwrap();
    let section = &schema["properties"]["Server"]["properties"]["Limits"];
    let mut looked_at = 0;
    for group in ["", "/DataRate", "/Http2"] {
        let keys = match group {
            "" => &section["properties"],
            group => &section["properties"][&group[1..]]["properties"],
        };
        for (key, value) in keys.as_object().unwrap() {
            if value["type"] != "integer" {
                continue;
            }
            looked_at += 1;
            let pointer = format!("{group}/{key}");
            let problems = |number: i64| read_limits(&with(&pointer, &json!(number))).1;
            let least = value["minimum"].as_i64().unwrap();
            assert_eq!(problems(least), [""; 0], "{pointer}: {least}");
            let too_little = problems(least - 1);
            assert_eq!(too_little, [format!("out_of_range {pointer}")], "{least}");
            let Some(most) = value["maximum"].as_i64() else {
                assert_eq!(problems(i64::MAX), [""; 0], "{pointer}");
                continue;
            };
            assert_eq!(problems(most), [""; 0], "{pointer}: {most}");
            let too_much = problems(most + 1);
            assert_eq!(too_much, [format!("out_of_range {pointer}")], "{most}");
        }
    }
    assert_eq!(looked_at, 20);
}

#[test]
fn times_have_ranges() {
    for (pointer, least, too_little, most, too_much) in [
        ("/HeaderTimeout", "100ms", "99ms", "1d", "1d1ms"),
        ("/TlsHandshakeTimeout", "100ms", "0s", "1d", "2d"),
        ("/KeepAlive", "100ms", "0s", "10000000d", ""),
        ("/ConnectionAge", "1s", "999ms", "10000000d", ""),
        ("/ClosingGrace", "0s", "", "1m", "61s"),
        ("/DataRate/Window", "1s", "0s", "1d", "25h"),
    ] {
        let problems = |time: &str| read_limits(&with(pointer, &json!(time))).1;
        for fine in [least, most] {
            assert_eq!(problems(fine), [""; 0], "{pointer}: {fine}");
        }
        for beyond in [too_little, too_much] {
            if !beyond.is_empty() {
                let expected = [format!("out_of_range {pointer}")];
                assert_eq!(problems(beyond), expected, "{beyond}");
            }
        }
    }
}

#[test]
fn mistakes_are_named_and_what_to_write_instead() {
    for (section, expected) in [
        (
            json!({ "KeepAlive": "0s" }),
            "error at /KeepAlive: `KeepAlive` is shorter than 100ms (`Infinite` is for ever)",
        ),
        (
            json!({ "HeaderTimeout": "0s" }),
            "error at /HeaderTimeout: `HeaderTimeout` is not between 100ms and 86400s",
        ),
        (
            json!({ "HeaderTimeout": "Infinite" }),
            "error at /HeaderTimeout: `Infinite` is not a length of time (write `15s`, `1m30s` or `00:00:15`)",
        ),
        (
            json!({ "ConnectionAge": 60 }),
            "error at /ConnectionAge: `60` has no unit: .NET reads a bare number as days (for seconds write `60s` or `00:01:00`)",
        ),
        (
            json!({ "Http2": { "ConcurrentStreams": 0 } }),
            "error at /Http2/ConcurrentStreams: 0 is not between 1 and 4294967295",
        ),
        (
            json!({ "Http2": { "StreamWindow": 2_147_483_648_u32 } }),
            "error at /Http2/StreamWindow: 2147483648 is not between 1024 and 2147483647",
        ),
        (
            json!({ "Http2": { "Streams": 1 } }),
            "error at /Http2/Streams: unknown key; known here are",
        ),
        (
            json!({ "DataRate": 240 }),
            "error at /DataRate: expected an object, found a number",
        ),
        (
            json!({ "DataRate": { "Enabled": "off" } }),
            "error at /DataRate/Enabled: `off` is neither `true` nor `false`",
        ),
    ] {
        let mut problems = Problems::new();
        let document = parse_document(&section.to_string()).unwrap();
        let read = ObjectReader::read(&document, "", &mut problems, read);
        assert_eq!(read, Some(Limits::default()), "{section}");
        let said = problems.to_string();
        assert!(said.contains(expected), "{said} and not {expected}");
    }
}
