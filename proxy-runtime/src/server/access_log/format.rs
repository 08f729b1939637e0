//! The text formats of access log records.

use std::fmt::{self, Write as _};

use super::field::{LogField, Milliseconds, RemoteAddress, Value, protocol, target};
use super::record::AccessRecord;
use super::template::AccessLogTemplate;
use crate::server::civil::Timestamp;

/// The format of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AccessLogFormat {
    /// One JSON object per line, for programs. Fields without a value are omitted.
    #[default]
    Json,
    /// One line for users: time, client, request line, status, sizes, times, then `name=value` for
    /// the rest.
    Text,
    /// One line in a format of the operator.
    Template(AccessLogTemplate),
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
    format: &AccessLogFormat,
    query: QueryLogging,
) {
    // Writing to a string does not fail.
    let _ = match format {
        AccessLogFormat::Json => write_json(line, record, query),
        AccessLogFormat::Text => write_text(line, record, query),
        AccessLogFormat::Template(template) => template.write(line, record, query),
    };
    line.push('\n');
}

fn write_json(line: &mut String, record: &AccessRecord<'_>, query: QueryLogging) -> fmt::Result {
    let mut before = '{';
    for field in LogField::ALL {
        let Some(value) = field.of(record, query).or_else(|| unparsed(field)) else {
            continue;
        };
        write!(line, "{before}\"{}\":", field.name())?;
        before = ',';
        match value {
            Value::Plain(text) => write!(line, "\"{text}\"")?,
            Value::Foreign(bytes) => {
                line.push('"');
                escape(line, &bytes)?;
                line.push('"');
            }
            Value::Number(number) => write!(line, "{number}")?,
            Value::Milliseconds(time) => write!(line, "{time}")?,
        }
    }
    line.write_char('}')
}

/// Returns the JSON value of a field for a request that could not be parsed: programs expect the field.
fn unparsed(field: LogField) -> Option<Value<'static>> {
    matches!(field, LogField::Method | LogField::Host | LogField::Path)
        .then(|| Value::Plain("".into()))
}

fn write_text(line: &mut String, record: &AccessRecord<'_>, query: QueryLogging) -> fmt::Result {
    write!(line, "{} ", Timestamp(record.time))?;
    match record.remote {
        Some(remote) => write!(line, "{} \"", RemoteAddress(remote))?,
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
    let rest = LogField::ALL
        .into_iter()
        .skip_while(|field| *field != LogField::Upstream);
    for field in rest {
        match field.of(record, query) {
            None => {}
            Some(Value::Milliseconds(time)) => {
                // The unit stands behind the number, where people read it.
                let name = field.name();
                write!(line, " {}={time}ms", name.trim_end_matches("_ms"))?;
            }
            Some(Value::Plain(text)) => write!(line, " {}=\"{text}\"", field.name())?,
            Some(Value::Number(number)) => write!(line, " {}={number}", field.name())?,
            Some(Value::Foreign(bytes)) => {
                write!(line, " {}=\"", field.name())?;
                escape(line, &bytes)?;
                line.push('"');
            }
        }
    }
    Ok(())
}

fn scheme(record: &AccessRecord<'_>) -> &'static str {
    if record.tls { "https" } else { "http" }
}

/// Escapes `value` as a JSON string (RFC 8259 section 7), so that it can end neither the string nor
/// the line, nor control a terminal. Bytes that are not UTF-8 become U+FFFD.
pub(super) fn escape(line: &mut String, value: &[u8]) -> fmt::Result {
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
    use std::time::Duration;

    use http::StatusCode;

    use super::super::tests::record;
    use super::*;
    use crate::response::ExchangeInfo;

    fn line(record: &AccessRecord<'_>, format: &AccessLogFormat, query: QueryLogging) -> String {
        let mut line = String::new();
        write_line(&mut line, record, format, query);
        line
    }

    #[test]
    fn json_has_one_object_a_line() {
        assert_eq!(
            line(&record(), &AccessLogFormat::Json, QueryLogging::Names),
            "{\"time\":\"1970-01-01T00:00:01.500Z\",\"remote\":\"192.0.2.7:4711\",\"scheme\":\"https\",\
             \"method\":\"GET\",\"host\":\"t.example\",\"path\":\"/a?user=…&token=…&…&\",\
             \"protocol\":\"HTTP/1.1\",\"status\":200,\"bytes_received\":0,\"bytes_sent\":12,\
             \"duration_ms\":1.234,\"outcome\":\"complete\",\"user_agent\":\"curl/8\"}\n"
        );
    }

    #[test]
    fn text_is_for_people() {
        assert_eq!(
            line(&record(), &AccessLogFormat::Text, QueryLogging::Full),
            "1970-01-01T00:00:01.500Z 192.0.2.7:4711 \"GET https://t.example/a?user=me&token=s3cret&flag& \
             HTTP/1.1\" 200 0 12 1.234ms outcome=complete user_agent=\"curl/8\"\n"
        );
    }

    #[test]
    fn each_time_has_its_name() {
        let exchange = ExchangeInfo {
            time_to_head: Some(Duration::from_micros(3_000)),
            added: Some(Duration::from_micros(250)),
            first_byte: Some(Duration::from_micros(3_250)),
            ..ExchangeInfo::default()
        };
        let record = AccessRecord {
            exchange: Some(&exchange),
            ..record()
        };
        let line = line(&record, &AccessLogFormat::Text, QueryLogging::Full);
        assert!(
            line.contains(" upstream=3.000ms added=0.250ms first_byte=3.250ms "),
            "{line}"
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
            line(&record, &AccessLogFormat::Text, QueryLogging::Names),
            "1970-01-01T00:00:01.500Z 192.0.2.7:4711 \"-\" 400 0 12 1.234ms outcome=complete \
             cause=\"malformed_request\" refusal=\"the start line does not have its parts\"\n"
        );
    }

    #[test]
    fn a_query_can_be_left_out() {
        let line = line(&record(), &AccessLogFormat::Text, QueryLogging::Omit);
        assert!(line.contains("https://t.example/a HTTP/1.1"), "{line}");
    }

    #[test]
    fn a_client_cannot_write_lines_of_its_own() {
        let record = AccessRecord {
            user_agent: Some(b"a\r\nb\"c\\d\te\x1b[2J\xff\xe2\x80\xa8\xc2\x9b"),
            ..record()
        };
        for format in [AccessLogFormat::Json, AccessLogFormat::Text] {
            let line = line(&record, &format, QueryLogging::Names);
            assert_eq!(line.lines().count(), 1, "{line}");
            let expected = "\"a\\u000d\\u000ab\\\"c\\\\d\\u0009e\\u001b[2J\u{fffd}\\u2028\\u009b\"";
            assert!(line.contains(expected), "{line}");
        }
    }
}
