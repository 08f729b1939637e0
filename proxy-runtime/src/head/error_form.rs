//! The bodies of the proxy's own error responses, in the form that a client prefers.

use std::fmt::Write as _;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, VARY};
use http::{StatusCode, header};

/// The most bytes of `Accept` that are read.
const MOST_BYTES: usize = 4096;
/// The most media ranges that are read.
const MOST_RANGES: usize = 64;

/// The form of an error body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ErrorForm {
    /// `text/plain`.
    #[default]
    Text,
    /// `text/html`.
    Html,
    /// `application/problem+json` (RFC 9457).
    Problem,
}

/// The range of `Accept` that decides about a form.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Preference {
    /// In thousandths.
    quality: u16,
    /// 0 for `*/*`, 2 for a whole type.
    specificity: u8,
    /// Greater for ranges that come first.
    order: u8,
}

impl ErrorForm {
    const ALL: [Self; 3] = [Self::Text, Self::Problem, Self::Html];

    /// The form that the lines of an `Accept` prefer (RFC 9110 section 12.5.1): by quality, then by specificity, then
    /// by order. [`Text`](Self::Text) if nothing is preferred or none is accepted.
    pub(crate) fn of<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut best: [Option<Preference>; 3] = [None; 3];
        let mut bytes = 0;
        let mut left = MOST_RANGES;
        for line in lines {
            bytes += line.len();
            if bytes > MOST_BYTES {
                break;
            }
            for range in line.split(|byte| *byte == b',') {
                let range = range.trim_ascii();
                if range.is_empty() {
                    continue;
                }
                let Some(order) = left.checked_sub(1) else {
                    break;
                };
                left = order;
                note(range, order as u8, &mut best);
            }
        }
        let mut chosen = (Self::Text, Preference::default());
        for (form, preference) in Self::ALL.into_iter().zip(best) {
            let Some(preference) = preference.filter(|preference| preference.quality > 0) else {
                continue;
            };
            if preference.rank() > chosen.1.rank() {
                chosen = (form, preference);
            }
        }
        chosen.0
    }

    /// The form that a body of this media type has: plain text for all that is neither HTML nor JSON.
    pub(crate) fn of_media_type(media_type: &[u8]) -> Self {
        let media_type = media_type.split(|byte| *byte == b';').next();
        let media_type = media_type.unwrap_or_default().trim_ascii();
        let media_type = media_type.to_ascii_lowercase();
        let forms = [Self::Problem, Self::Html];
        let exact = |form: &Self| form.meets(&media_type) == Some(2);
        forms.into_iter().find(exact).unwrap_or_default()
    }

    /// The form that the `Accept` of a map of fields prefers.
    pub(crate) fn of_fields(fields: &HeaderMap) -> Self {
        let lines = fields.get_all(header::ACCEPT).iter();
        Self::of(lines.map(HeaderValue::as_bytes))
    }

    /// Returns a body with the status and a sentence that explains it. Adds the fields that describe the body.
    #[cold]
    pub(crate) fn write(
        self,
        status: StatusCode,
        detail: Option<&str>,
        fields: &mut HeaderMap,
    ) -> Bytes {
        // A redirect is followed and not shown, so its body needs no form.
        let is_error = status.is_client_error() || status.is_server_error();
        let form = if is_error { self } else { Self::Text };
        let (kind, body) = match form {
            Self::Text => (
                "text/plain; charset=utf-8",
                match detail {
                    Some(detail) => format!("{detail}\n"),
                    None => format!("{}\n", in_words(status)),
                },
            ),
            Self::Html => ("text/html; charset=utf-8", html(status, detail)),
            Self::Problem => ("application/problem+json", problem(status, detail)),
        };
        fields.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        if form != Self::Text {
            // The plain form suits everybody, so a cache may give it to all.
            fields.append(VARY, HeaderValue::from_static("Accept"));
        }
        body.into()
    }

    /// Returns the specificity of `range`, in lower case without its parameters, if it covers this form.
    fn meets(self, range: &[u8]) -> Option<u8> {
        let (whole, partly): (&[&[u8]], &[u8]) = match self {
            Self::Text => (&[b"text/plain"], b"text/*"),
            Self::Html => (&[b"text/html", b"application/xhtml+xml"], b"text/*"),
            Self::Problem => (&[b"application/json"], b"application/*"),
        };
        let is_json = self == Self::Problem && range.ends_with(b"+json");
        if is_json || whole.contains(&range) {
            return Some(2);
        }
        match range {
            b"*/*" => Some(0),
            _ if range == partly => Some(1),
            _ => None,
        }
    }
}

impl Preference {
    fn rank(self) -> (u16, u8, u8) {
        let order = match self.specificity {
            // The order of the forms decides.
            0 => 0,
            _ => self.order,
        };
        (self.quality, self.specificity, order)
    }
}

/// Notes a range for each form that it decides about: the most exact one does.
fn note(range: &[u8], order: u8, best: &mut [Option<Preference>; 3]) {
    let mut parts = range.split(|byte| *byte == b';');
    let media = parts.next().unwrap_or_default().trim_ascii();
    let media = media.to_ascii_lowercase();
    let quality = parts.find_map(|parameter| {
        let (name, value) = parameter.trim_ascii().split_at_checked(2)?;
        name.eq_ignore_ascii_case(b"q=").then_some(value)
    });
    let quality = quality.map_or(1000, quality_of);
    for (form, best) in ErrorForm::ALL.into_iter().zip(best) {
        let Some(specificity) = form.meets(&media) else {
            continue;
        };
        // RFC 9110 section 12.5.1: the most specific range counts.
        if best.is_none_or(|best| specificity > best.specificity) {
            *best = Some(Preference {
                quality,
                specificity,
                order,
            });
        }
    }
}

/// The thousandths of a quality. One that is none is 0, so that it prefers nothing.
fn quality_of(text: &[u8]) -> u16 {
    let (whole, digits) = match text {
        [whole, b'.', digits @ ..] => (whole, digits),
        [whole] => (whole, &[][..]),
        _ => return 0,
    };
    // RFC 9110 section 12.4.2: up to three digits.
    if digits.len() > 3 || !digits.iter().all(u8::is_ascii_digit) {
        return 0;
    }
    let mut thousandths = 0;
    for position in 0..3 {
        let digit = digits.get(position).map_or(0, |digit| digit - b'0');
        thousandths = thousandths * 10 + u16::from(digit);
    }
    match whole {
        b'0' => thousandths,
        b'1' if thousandths == 0 => 1000,
        _ => 0,
    }
}

/// The status with its reason: `404 Not Found`.
fn in_words(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

fn html(status: StatusCode, detail: Option<&str>) -> String {
    let title = in_words(status);
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>{title}</title></head>\n\
         <body><h1>{title}</h1>"
    );
    if let Some(detail) = detail {
        text.push_str("<p>");
        // Only the detail may have characters of HTML: the rest is the proxy's own.
        for c in detail.chars() {
            match c {
                '<' => text.push_str("&lt;"),
                '&' => text.push_str("&amp;"),
                c => text.push(c),
            }
        }
        text.push_str("</p>");
    }
    text.push_str("</body>\n</html>\n");
    text
}

fn problem(status: StatusCode, detail: Option<&str>) -> String {
    // RFC 9457 section 4.2.1: a problem that the status alone describes.
    let mut text = String::from("{\"type\":\"about:blank\"");
    if let Some(reason) = status.canonical_reason() {
        let _ = write!(text, ",\"title\":\"{reason}\"");
    }
    let _ = write!(text, ",\"status\":{}", status.as_u16());
    if let Some(detail) = detail {
        text.push_str(",\"detail\":\"");
        for c in detail.chars() {
            match c {
                '"' | '\\' => text.extend(['\\', c]),
                // RFC 8259 section 7.
                c if u32::from(c) < 0x20 => {
                    let _ = write!(text, "\\u{:04x}", u32::from(c));
                }
                c => text.push(c),
            }
        }
        text.push('"');
    }
    text.push_str("}\n");
    text
}

#[cfg(test)]
mod tests {
    use super::ErrorForm::{Html, Problem, Text};
    use super::*;

    #[test]
    fn accept_chooses_the_form() {
        for (accept, expected) in [
            (&[][..], Text),
            (&["*/*"], Text),
            (&[""], Text),
            (&["text/*"], Text),
            (&["application/json"], Problem),
            (&["application/problem+json"], Problem),
            (&["application/vnd.api+json"], Problem),
            (&["Application/JSON; charset=utf-8"], Problem),
            (&["application/*"], Problem),
            (&["text/html"], Html),
            // Chromium.
            (
                &["text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"],
                Html,
            ),
            // axios.
            (&["application/json, text/plain, */*"], Problem),
            (&["text/plain, application/json"], Text),
            (&["text/html;q=0.5, application/json;q=0.6"], Problem),
            (&["text/html;q=0.5", "application/json;q=0.4"], Html),
            (&["text/html;level=1;q=0.5, */*;q=0.6"], Text),
            (&["*/*, text/plain;q=0"], Problem),
            (&["text/html;q=0"], Text),
            (&["text/html;q=0, text/*;q=0.5"], Text),
            (&["text/html;q=2, application/json;q=1.000"], Problem),
            (&["text/html;q=x"], Text),
            (&["image/png"], Text),
            (&[",,;,", "application/json"], Problem),
        ] {
            let lines = accept.iter().map(|line| line.as_bytes());
            assert_eq!(ErrorForm::of(lines), expected, "{accept:?}");
        }
    }

    #[test]
    fn media_types_have_a_form() {
        for (media_type, expected) in [
            ("text/html", Html),
            ("Text/HTML; charset=utf-8", Html),
            ("application/xhtml+xml", Html),
            ("application/json", Problem),
            ("application/problem+json;charset=utf-8", Problem),
            ("text/plain", Text),
            ("image/svg+xml", Text),
            ("*/*", Text),
            ("", Text),
        ] {
            assert_eq!(
                ErrorForm::of_media_type(media_type.as_bytes()),
                expected,
                "{media_type}"
            );
        }
    }

    #[test]
    fn no_more_than_some_of_accept_is_read() {
        let many = ["image/png,".repeat(MOST_RANGES), "text/html".to_owned()].concat();
        assert_eq!(ErrorForm::of([many.as_bytes()]), Text);
        let long = [" ".repeat(MOST_BYTES), "text/html".to_owned()].concat();
        assert_eq!(ErrorForm::of([long.as_bytes()]), Text);
    }

    #[test]
    fn each_form_says_the_status_and_the_sentence() {
        for (form, kind, plain, with_detail) in [
            (
                Text,
                "text/plain; charset=utf-8",
                "403 Forbidden\n",
                "a \"<b>\" & c\n",
            ),
            (
                Html,
                "text/html; charset=utf-8",
                "<h1>403 Forbidden</h1></body>",
                "<p>a \"&lt;b>\" &amp; c</p>",
            ),
            (
                Problem,
                "application/problem+json",
                "{\"type\":\"about:blank\",\"title\":\"Forbidden\",\"status\":403}\n",
                ",\"detail\":\"a \\\"<b>\\\" & c\"}",
            ),
        ] {
            for (detail, expected) in [(None, plain), (Some("a \"<b>\" & c"), with_detail)] {
                let mut fields = HeaderMap::new();
                let body = form.write(StatusCode::FORBIDDEN, detail, &mut fields);
                let body = std::str::from_utf8(&body).unwrap();
                assert!(body.contains(expected), "{body}");
                assert_eq!(fields[CONTENT_TYPE], kind);
                assert_eq!(fields.contains_key(VARY), form != Text);
            }
        }
        // A redirect is no error.
        let mut fields = HeaderMap::new();
        let body = Html.write(StatusCode::PERMANENT_REDIRECT, None, &mut fields);
        assert_eq!(body, "308 Permanent Redirect\n");
        let strange = StatusCode::from_u16(599).unwrap();
        let body = Problem.write(strange, Some("a\nb"), &mut fields);
        assert_eq!(
            body,
            "{\"type\":\"about:blank\",\"status\":599,\"detail\":\"a\\u000ab\"}\n"
        );
    }
}
