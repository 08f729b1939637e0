//! The text formats of access log records.

use std::fmt::{self, Write as _};
use std::time::Duration;

use http::Version;

use super::record::AccessRecord;
use crate::server::civil::Timestamp;

/// The format of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AccessLogFormat {
    /// One JSON object per line, for programs. Fields without a value are omitted.
    #[default]
    Json,
    /// One line for users: time, client, request line, status, sizes, times, then `name=value` for
    /// the rest.
    Text,
}

/// The part of a query that is logged. Queries contain tokens and personal data more often than
/// intended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueryLogging {
    /// Names without their values: `?user=…&token=…`.
    #[default]
    Names,
    /// The whole query.
    Full,
    /// No query, and no sign that there is one.
    Omit,
}

/// Writes `record` as one line to `line`, with a line end.
pub(super) fn write_line(
    line: &mut String,
    record: &AccessRecord<'_>,
    format: AccessLogFormat,
    query: QueryLogging,
) {
    // Writing to a string does not fail.
    let _ = match format {
        AccessLogFormat::Json => write_json(line, record, query),
        AccessLogFormat::Text => write_text(line, record, query),
    };
    line.push('\n');
}

fn write_json(line: &mut String, record: &AccessRecord<'_>, query: QueryLogging) -> fmt::Result {
    write!(line, "{{\"time\":\"{}\"", Timestamp(record.time))?;
    if let Some(remote) = record.remote {
        write!(line, ",\"remote\":\"{remote}\"")?;
    }
    string(line, "scheme", scheme(record).as_bytes())?;
    string(line, "method", record.method.as_bytes())?;
    string(line, "host", record.host)?;
    string(line, "path", target(record, query).as_bytes())?;
    string(line, "protocol", protocol(record.version).as_bytes())?;
    if let Some(status) = record.status {
        write!(line, ",\"status\":{}", status.as_u16())?;
    }
    write!(
        line,
        ",\"bytes_received\":{},\"bytes_sent\":{},\"duration_ms\":{}",
        record.bytes_received,
        record.bytes_sent,
        Milliseconds(record.duration)
    )?;
    string(line, "outcome", record.outcome.as_str().as_bytes())?;
    let facts = Facts::of(record);
    if let Some(time) = facts.time_to_head {
        write!(line, ",\"upstream_ms\":{}", Milliseconds(time))?;
    }
    for (name, value) in facts.named() {
        if let Some(value) = value {
            string(line, name, value)?;
        }
    }
    line.write_char('}')
}

fn write_text(line: &mut String, record: &AccessRecord<'_>, query: QueryLogging) -> fmt::Result {
    write!(line, "{} ", Timestamp(record.time))?;
    match record.remote {
        Some(remote) => write!(line, "{remote} \"")?,
        None => line.push_str("- \""),
    }
    if record.method.is_empty() {
        // The request could not be parsed.
        line.push_str("-\" ");
    } else {
        escape(line, record.method.as_bytes())?;
        write!(line, " {}://", scheme(record))?;
        escape(line, record.host)?;
        escape(line, target(record, query).as_bytes())?;
        write!(line, " {}\" ", protocol(record.version))?;
    }
    match record.status {
        Some(status) => write!(line, "{}", status.as_u16())?,
        None => line.push('-'),
    }
    write!(
        line,
        " {} {} {}ms",
        record.bytes_received,
        record.bytes_sent,
        Milliseconds(record.duration)
    )?;
    write!(line, " outcome={}", record.outcome.as_str())?;
    let facts = Facts::of(record);
    if let Some(time) = facts.time_to_head {
        write!(line, " upstream={}ms", Milliseconds(time))?;
    }
    for (name, value) in facts.named() {
        if let Some(value) = value {
            write!(line, " {name}=\"")?;
            escape(line, value)?;
            line.push('"');
        }
    }
    Ok(())
}

/// The optional fields of a record.
#[derive(Default)]
struct Facts<'a> {
    time_to_head: Option<Duration>,
    route: Option<&'a str>,
    cluster: Option<&'a str>,
    destination: Option<&'a str>,
    error: Option<&'a str>,
    rejection: Option<&'a str>,
    user_agent: Option<&'a [u8]>,
}

impl<'a> Facts<'a> {
    fn of(record: &AccessRecord<'a>) -> Self {
        let mut facts = Self {
            error: record.body_error.map(|error| error.as_str()),
            rejection: record.rejection,
            user_agent: record.user_agent,
            ..Self::default()
        };
        if let Some(exchange) = record.exchange {
            facts.time_to_head = exchange.time_to_head();
            facts.route = exchange.route().map(|id| id.as_str());
            facts.cluster = exchange.cluster().map(|id| id.as_str());
            facts.destination = exchange.destination().map(|id| id.as_str());
            facts.error = facts
                .error
                .or_else(|| exchange.error().map(|error| error.as_str()));
        }
        facts
    }

    fn named(&self) -> [(&'static str, Option<&'a [u8]>); 6] {
        [
            ("route", self.route.map(str::as_bytes)),
            ("cluster", self.cluster.map(str::as_bytes)),
            ("destination", self.destination.map(str::as_bytes)),
            ("error", self.error.map(str::as_bytes)),
            ("refusal", self.rejection.map(str::as_bytes)),
            ("user_agent", self.user_agent),
        ]
    }
}

fn scheme(record: &AccessRecord<'_>) -> &'static str {
    if record.tls { "https" } else { "http" }
}

fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2",
        _ => "HTTP/1.1",
    }
}

/// Path and query, with the query as configured.
fn target(record: &AccessRecord<'_>, logging: QueryLogging) -> String {
    let mut target = record.path.to_owned();
    let Some(query) = record.query else {
        return target;
    };
    match logging {
        QueryLogging::Omit => {}
        QueryLogging::Full => {
            target.push('?');
            target.push_str(query);
        }
        QueryLogging::Names => {
            for (index, pair) in query.split('&').enumerate() {
                target.push(if index == 0 { '?' } else { '&' });
                // A part without `=` may be a name or a value, so it is hidden.
                match pair.split_once('=') {
                    Some((name, _)) => {
                        target.push_str(name);
                        target.push_str("=…");
                    }
                    None if pair.is_empty() => {}
                    None => target.push('…'),
                }
            }
        }
    }
    target
}

/// Milliseconds with three decimals.
struct Milliseconds(Duration);

impl fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_micros();
        write!(f, "{}.{:03}", micros / 1000, micros % 1000)
    }
}

fn string(line: &mut String, name: &str, value: &[u8]) -> fmt::Result {
    write!(line, ",\"{name}\":\"")?;
    escape(line, value)?;
    line.write_char('"')
}

/// Escapes `value` as a JSON string (RFC 8259 section 7), so that it can end neither the string nor
/// the line, nor control a terminal. Bytes that are not UTF-8 become U+FFFD.
fn escape(line: &mut String, value: &[u8]) -> fmt::Result {
    for chunk in value.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' => line.push_str("\\\""),
                '\\' => line.push_str("\\\\"),
                // Control characters, including C1, and line separators of Unicode.
                character
                    if character.is_control() || matches!(character, '\u{2028}' | '\u{2029}') =>
                {
                    write!(line, "\\u{:04x}", u32::from(character))?;
                }
                character => line.push(character),
            }
        }
        if !chunk.invalid().is_empty() {
            line.push(char::REPLACEMENT_CHARACTER);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use http::StatusCode;

    use super::*;
    use crate::server::Outcome;

    fn record() -> AccessRecord<'static> {
        AccessRecord {
            time: UNIX_EPOCH + Duration::from_millis(1_500),
            remote: Some("192.0.2.7:4711".parse().unwrap()),
            tls: true,
            method: "GET",
            host: b"t.example",
            path: "/a",
            query: Some("user=me&token=s3cret&flag&"),
            version: Version::HTTP_11,
            status: Some(StatusCode::OK),
            bytes_received: 0,
            bytes_sent: 12,
            duration: Duration::from_micros(1_234),
            outcome: Outcome::Complete,
            exchange: None,
            body_error: None,
            rejection: None,
            user_agent: Some(b"curl/8"),
        }
    }

    fn line(record: &AccessRecord<'_>, format: AccessLogFormat, query: QueryLogging) -> String {
        let mut line = String::new();
        write_line(&mut line, record, format, query);
        line
    }

    #[test]
    fn json_has_one_object_a_line() {
        assert_eq!(
            line(&record(), AccessLogFormat::Json, QueryLogging::Names),
            "{\"time\":\"1970-01-01T00:00:01.500Z\",\"remote\":\"192.0.2.7:4711\",\"scheme\":\"https\",\
             \"method\":\"GET\",\"host\":\"t.example\",\"path\":\"/a?user=…&token=…&…&\",\
             \"protocol\":\"HTTP/1.1\",\"status\":200,\"bytes_received\":0,\"bytes_sent\":12,\
             \"duration_ms\":1.234,\"outcome\":\"complete\",\"user_agent\":\"curl/8\"}\n"
        );
    }

    #[test]
    fn text_is_for_people() {
        assert_eq!(
            line(&record(), AccessLogFormat::Text, QueryLogging::Full),
            "1970-01-01T00:00:01.500Z 192.0.2.7:4711 \"GET https://t.example/a?user=me&token=s3cret&flag& \
             HTTP/1.1\" 200 0 12 1.234ms outcome=complete user_agent=\"curl/8\"\n"
        );
    }

    #[test]
    fn what_is_no_request_has_no_target() {
        let record = AccessRecord {
            method: "",
            host: b"",
            path: "",
            query: None,
            status: Some(StatusCode::BAD_REQUEST),
            rejection: Some("the start line does not have its parts"),
            user_agent: None,
            ..record()
        };
        assert_eq!(
            line(&record, AccessLogFormat::Text, QueryLogging::Names),
            "1970-01-01T00:00:01.500Z 192.0.2.7:4711 \"-\" 400 0 12 1.234ms outcome=complete \
             rejection=\"the start line does not have its parts\"\n"
        );
    }

    #[test]
    fn a_query_can_be_left_out() {
        let line = line(&record(), AccessLogFormat::Text, QueryLogging::Omit);
        assert!(line.contains("https://t.example/a HTTP/1.1"), "{line}");
    }

    #[test]
    fn a_client_cannot_write_lines_of_its_own() {
        let record = AccessRecord {
            user_agent: Some(b"a\r\nb\"c\\d\te\x1b[2J\xff\xe2\x80\xa8\xc2\x9b"),
            ..record()
        };
        for format in [AccessLogFormat::Json, AccessLogFormat::Text] {
            let line = line(&record, format, QueryLogging::Names);
            assert_eq!(line.lines().count(), 1, "{line}");
            let expected = "\"a\\u000d\\u000ab\\\"c\\\\d\\u0009e\\u001b[2J\u{fffd}\\u2028\\u009b\"";
            assert!(line.contains(expected), "{line}");
        }
    }
}
