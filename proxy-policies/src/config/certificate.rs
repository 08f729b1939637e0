//! The settings of client certificates: which of those that the listener has verified may use a route.

use std::net::IpAddr;

use proxy_model::json::{Node, ObjectReader};
use proxy_model::{Problem, Problems};
use serde::{Deserialize, Serialize};

use super::missing;

/// The certificates that are admitted. A certificate must meet each list that is there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CertificateConfig {
    pub(crate) subjects: Option<Vec<Subject>>,
    pub(crate) names: Option<Vec<Name>>,
    /// SHA-256 of the DER form, in lower case and without colons.
    pub(crate) fingerprints: Option<Vec<String>>,
}

/// Attributes of a subject, each with the dotted number of its type.
pub(crate) type Subject = Vec<(String, String)>;

/// An alternative name of a subject, or a pattern for such names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Name {
    /// In lower case.
    Dns(String),
    /// All names below this one, which begins with a dot. In lower case.
    BelowDns(String),
    Uri(String),
    /// All URIs that begin with this text, which ends with a slash.
    BelowUri(String),
    Email(String),
    Address(IpAddr),
}

/// The types of attributes by their short names (RFC 4514 section 3, and those that OpenSSL prints).
pub(crate) const TYPES: [(&str, &str); 13] = [
    ("CN", "2.5.4.3"),
    ("O", "2.5.4.10"),
    ("OU", "2.5.4.11"),
    ("C", "2.5.4.6"),
    ("L", "2.5.4.7"),
    ("ST", "2.5.4.8"),
    ("S", "2.5.4.8"),
    ("STREET", "2.5.4.9"),
    ("serialNumber", "2.5.4.5"),
    ("DC", "0.9.2342.19200300.100.1.25"),
    ("UID", "0.9.2342.19200300.100.1.1"),
    ("emailAddress", "1.2.840.113549.1.9.1"),
    ("E", "1.2.840.113549.1.9.1"),
];

/// The claims that a certificate has.
pub(crate) const CERTIFICATE_CLAIMS: [&str; 2] = ["fingerprint", "subject"];

pub(super) fn read(certificate: &mut ObjectReader<'_, '_>) -> CertificateConfig {
    CertificateConfig {
        subjects: read_list(certificate, "Subjects", |text| {
            subject(text).map_err(|reason| {
                let suggestion =
                    "write attributes as `CN=orders,O=Example`; a comma in a value as `\\,`";
                (reason, suggestion)
            })
        }),
        names: read_list(certificate, "Names", |text| {
            name(text).ok_or_else(|| (
                "no alternative name".to_owned(),
                "write `orders.example`, `*.orders.example`, `spiffe://example/orders`, `spiffe://example/*`, \
                 `ann@example.com` or an address",
            ))
        }),
        fingerprints: read_list(certificate, "Fingerprints", |text| {
            fingerprint(text).ok_or_else(|| (
                "no SHA-256 in hexadecimal digits".to_owned(),
                "write what `openssl x509 -noout -fingerprint -sha256 -in client.pem` prints after `=`",
            ))
        }),
    }
}

/// Reads a list of texts. An empty one would admit no client, and is an error.
fn read_list<T>(
    certificate: &mut ObjectReader<'_, '_>,
    key: &'static str,
    parse: impl Fn(&str) -> Result<T, (String, &'static str)>,
) -> Option<Vec<T>> {
    let list = certificate.list(
        key,
        |node: &Node, pointer: &str, problems: &mut Problems| {
            let Node::Text(text) = node else {
                problems.push(Problem::error(pointer, "wrong_type", "expected text"));
                return None;
            };
            match parse(text.trim()) {
                Ok(parsed) => Some(parsed),
                Err((reason, suggestion)) => {
                    let message = format!("`{}` is {reason}", shortened(text));
                    let problem = Problem::error(pointer, "invalid_certificate_rule", message);
                    problems.push(problem.with_suggestion(suggestion));
                    None
                }
            }
        },
    );
    if matches!(certificate.peek(key), Some(Node::List(list)) if list.is_empty()) {
        missing(
            certificate,
            key,
            "the list is empty, so nobody may use the routes: name somebody, or remove the list",
        );
    }
    list
}

fn shortened(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(120).collect()
}

/// Parses a subject in the form of RFC 4514, whose order does not count.
fn subject(text: &str) -> Result<Subject, String> {
    let mut attributes = Vec::new();
    for part in parts(text)? {
        let (kind, value) = part.split_once('=').ok_or("no list of attributes")?;
        let kind = kind.trim();
        let is_number = kind.contains('.') && kind.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let number = match TYPES
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(kind))
        {
            Some((_, number)) => (*number).to_owned(),
            None if is_number => kind.to_owned(),
            None => return Err(format!("no subject: `{kind}` is not a type of attribute")),
        };
        let value = unescaped(value.trim())?;
        if value.is_empty() {
            return Err(format!("no subject: `{kind}` has no value"));
        }
        attributes.push((number, value));
    }
    attributes.sort();
    Ok(attributes)
}

/// The texts between commas and plus signs that no backslash precedes.
fn parts(text: &str) -> Result<Vec<&str>, String> {
    let mut parts = Vec::new();
    let (mut start, mut is_escaped) = (0, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b',' | b'+' => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if is_escaped {
        return Err("no subject: it ends with a backslash".to_owned());
    }
    parts.push(&text[start..]);
    Ok(parts)
}

fn unescaped(value: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match digits.filter(|two| two.bytes().all(|b| b.is_ascii_hexdigit())) {
            Some(two) => {
                bytes.extend(u8::from_str_radix(two, 16).ok());
                rest = &after[2..];
            }
            None => {
                let [sign, after @ ..] = after else { break };
                bytes.push(*sign);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).map_err(|_| "no subject: it is not UTF-8".to_owned())
}

fn name(text: &str) -> Option<Name> {
    if text.is_empty() || text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return None;
    }
    if text.contains("://") {
        let below = text.strip_suffix('*').filter(|below| below.ends_with('/'));
        // `spiffe://*` would be everybody, of any domain.
        let below = below.filter(|below| !below.ends_with("://"));
        return match below {
            Some(below) if !below.contains('*') => Some(Name::BelowUri(below.to_owned())),
            None if !text.contains('*') => Some(Name::Uri(text.to_owned())),
            _ => None,
        };
    }
    if text.contains('*') && !text.starts_with("*.") || text[1..].contains('*') {
        return None;
    }
    if let Ok(address) = text.parse() {
        return Some(Name::Address(address));
    }
    if text.contains('@') {
        return Some(Name::Email(text.to_owned()));
    }
    let lower = text.to_ascii_lowercase();
    Some(match lower.strip_prefix('*') {
        Some(below) => Name::BelowDns(below.to_owned()),
        None => Name::Dns(lower),
    })
}

fn fingerprint(text: &str) -> Option<String> {
    let digits: String = text.chars().filter(|c| *c != ':').collect();
    let is_sha256 = digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    is_sha256.then(|| digits.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_read_as_rfc_4514_writes_them() {
        let cn = |value: &str| ("2.5.4.3".to_owned(), value.to_owned());
        let o = |value: &str| ("2.5.4.10".to_owned(), value.to_owned());
        for (text, expected) in [
            ("CN=orders", Some(vec![cn("orders")])),
            (
                "cn = orders , O=Example",
                Some(vec![o("Example"), cn("orders")]),
            ),
            (
                "O=Example,CN=orders",
                Some(vec![o("Example"), cn("orders")]),
            ),
            (
                "2.5.4.3=orders+2.5.4.10=a",
                Some(vec![o("a"), cn("orders")]),
            ),
            (r"CN=a\,O=b", Some(vec![cn("a,O=b")])),
            (r"CN=a\2cb\\", Some(vec![cn("a,b\\")])),
            (r"CN=\C3\BC", Some(vec![cn("ü")])),
            ("CN=a=b", Some(vec![cn("a=b")])),
            ("", None),
            ("orders", None),
            ("CN=", None),
            ("X=a", None),
            ("CN=a\\", None),
            (r"CN=\FF", None),
        ] {
            assert_eq!(subject(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn names_and_patterns_are_told_by_their_form() {
        let text = |text: &str| text.to_owned();
        for (written, expected) in [
            ("Orders.example", Some(Name::Dns(text("orders.example")))),
            (
                "*.Orders.example",
                Some(Name::BelowDns(text(".orders.example"))),
            ),
            ("spiffe://e/a", Some(Name::Uri(text("spiffe://e/a")))),
            (
                "spiffe://e/a/*",
                Some(Name::BelowUri(text("spiffe://e/a/"))),
            ),
            ("a@b.example", Some(Name::Email(text("a@b.example")))),
            ("::1", Some(Name::Address("::1".parse().unwrap()))),
            ("10.0.0.1", Some(Name::Address("10.0.0.1".parse().unwrap()))),
            ("spiffe://*", None),
            ("spiffe://e/*/a", None),
            ("spiffe://e/a*", None),
            ("*", None),
            ("a.*.b", None),
            ("*.*.b", None),
            ("a b", None),
            ("", None),
        ] {
            assert_eq!(name(written), expected, "{written}");
        }
    }

    #[test]
    fn fingerprints_have_colons_or_none() {
        let digits = "ab".repeat(32);
        assert_eq!(fingerprint(&digits.to_uppercase()), Some(digits.clone()));
        assert_eq!(fingerprint(&["AB"; 32].join(":")), Some(digits.clone()));
        // SHA-1 can be forged.
        assert_eq!(fingerprint(&digits[..40]), None);
        assert_eq!(fingerprint(&format!("{}g", &digits[..63])), None);
    }
}
