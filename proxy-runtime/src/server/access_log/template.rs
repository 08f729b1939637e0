//! Lines of the access log in a format of the operator.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::QueryLogging;
use super::field::{LogField, Value};
use super::format::escape;
use super::record::AccessRecord;

/// A format of lines: text with the names of fields in braces, `{remote} "{method} {path}" {status}`.
///
/// The names are those of the JSON format. A field without a value is `-`. Values from outside are escaped
/// as in JSON strings. `{{` and `}}` are braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLogTemplate(Arc<[Part]>);

/// The reason why a text is no template. Its text says what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidTemplate {
    /// There is no field of this name.
    UnknownField(String),
    /// A brace has no counterpart, at this byte.
    UnpairedBrace(usize),
    /// A line would end within the text, or control a terminal.
    ControlCharacter,
}

#[derive(Debug, PartialEq, Eq)]
enum Part {
    Text(Box<str>),
    LogField(LogField),
}

impl AccessLogTemplate {
    /// Writes a record to `line`, without a line end.
    pub(super) fn write(
        &self,
        line: &mut String,
        record: &AccessRecord<'_>,
        query: QueryLogging,
    ) -> fmt::Result {
        use fmt::Write as _;

        for part in &*self.0 {
            match part {
                Part::Text(text) => line.push_str(text),
                Part::LogField(field) => match field.of(record, query) {
                    None => line.push('-'),
                    Some(Value::Plain(text)) => line.push_str(&text),
                    Some(Value::Foreign(bytes)) => escape(line, &bytes)?,
                    Some(Value::Number(number)) => write!(line, "{number}")?,
                    Some(Value::Milliseconds(time)) => write!(line, "{time}")?,
                },
            }
        }
        Ok(())
    }
}

impl FromStr for AccessLogTemplate {
    type Err = InvalidTemplate;

    fn from_str(template: &str) -> Result<Self, Self::Err> {
        if template.chars().any(char::is_control) {
            return Err(InvalidTemplate::ControlCharacter);
        }
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut rest = template;
        while let Some(at) = rest.find(['{', '}']) {
            // For the message, counted from the beginning of the template.
            let place = template.len() - rest.len() + at;
            let (before, from) = rest.split_at(at);
            text.push_str(before);
            if let Some(after) = ["{{", "}}"].iter().find_map(|pair| from.strip_prefix(pair)) {
                text.push_str(&from[..1]);
                rest = after;
                continue;
            }
            let named = from.strip_prefix('{').and_then(|from| from.split_once('}'));
            let (name, after) = named.ok_or(InvalidTemplate::UnpairedBrace(place))?;
            let field = LogField::ALL.into_iter().find(|field| field.name() == name);
            let field = field.ok_or_else(|| InvalidTemplate::UnknownField(name.to_owned()))?;
            if !text.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut text).into()));
            }
            parts.push(Part::LogField(field));
            rest = after;
        }
        text.push_str(rest);
        if !text.is_empty() {
            parts.push(Part::Text(text.into()));
        }
        Ok(Self(parts.into()))
    }
}

impl fmt::Display for InvalidTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownField(name) => {
                let names: Vec<_> = LogField::ALL.iter().map(|field| field.name()).collect();
                write!(
                    f,
                    "there is no field `{name}`; there are {}",
                    names.join(", ")
                )
            }
            Self::UnpairedBrace(at) => write!(
                f,
                "the brace at byte {at} has no counterpart; write {{{{ or }}}} for a brace itself"
            ),
            Self::ControlCharacter => {
                f.write_str("line ends, tabs and other control characters are not possible")
            }
        }
    }
}

impl std::error::Error for InvalidTemplate {}

#[cfg(test)]
mod tests {
    use super::super::tests::record;
    use super::*;

    fn line(template: &str, record: &AccessRecord<'_>) -> String {
        let template: AccessLogTemplate = template.parse().unwrap();
        let mut line = String::new();
        let written = template.write(&mut line, record, QueryLogging::Names);
        written.unwrap();
        line
    }

    #[test]
    fn fields_have_the_names_of_json() {
        let all: Vec<_> = LogField::ALL.iter().map(|field| field.name()).collect();
        let template = all.iter().map(|name| format!("{{{name}}}"));
        assert_eq!(
            line(&template.collect::<Vec<_>>().join(" "), &record()),
            "1970-01-01T00:00:01.500Z 192.0.2.7:4711 https GET t.example /a?user=…&token=…&…& HTTP/1.1 200 0 12 \
             1.234 complete - - - - - - - - - curl/8"
        );
    }

    #[test]
    fn braces_are_written_twice() {
        assert_eq!(line("{{{status}}} }}{{", &record()), "{200} }{");
    }

    #[test]
    fn a_client_cannot_write_lines_of_its_own() {
        let record = AccessRecord {
            user_agent: Some(b"a\r\nb\"\x1b[2J"),
            ..record()
        };
        assert_eq!(
            line("{user_agent}", &record),
            "a\\u000d\\u000ab\\\"\\u001b[2J"
        );
    }

    #[test]
    fn mistakes_are_named() {
        let error = |template: &str| {
            template
                .parse::<AccessLogTemplate>()
                .unwrap_err()
                .to_string()
        };
        let unknown = error("{time} {stats}");
        assert!(
            unknown.starts_with("there is no field `stats`; there are time, remote, "),
            "{unknown}"
        );
        for template in ["a {time", "a } b", "a {"] {
            let message = error(template);
            assert!(
                message.starts_with("the brace at byte 2 has no counterpart"),
                "{message}"
            );
        }
        assert!(error("a\n").starts_with("line ends"));
    }
}
