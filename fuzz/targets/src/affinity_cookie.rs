//! Cookies with affinity keys.

use proxy_runtime::affinity::{KeyText, find_cookie};

use crate::input::{Head, MAX_BYTES};

/// Fuzzes the cookies of a request: the name of a cookie, and then the lines of `Cookie` as bytes.
///
/// * The cookie that is found is the last one of this name with a value, as a naive reader finds it.
/// * Two lines have the cookies of one with a `;` between them.
/// * A cookie of another name in front of all makes no difference.
/// * The text is bounded.
pub fn affinity_cookie(data: &[u8]) {
    let mut lines = data[..data.len().min(MAX_BYTES)].split(|byte| *byte == b'\n');
    let name = String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
        return;
    }
    let lines: Vec<&[u8]> = lines.collect();
    let found = find(&name, &lines);
    assert_eq!(found, naively(&name, &lines));
    assert!(
        found
            .as_ref()
            .is_none_or(|text| text.as_ref().is_none_or(|text| text.len() <= 160))
    );
    let joined = lines.join(&b';');
    assert_eq!(find(&name, &[&joined]), found, "the lines as one");
    let other = format!("x{name}=1");
    let with_other: Vec<&[u8]> = [other.as_bytes()].into_iter().chain(lines).collect();
    assert_eq!(find(&name, &with_other), found, "another cookie");
}

/// The text of the cookie. `Some(None)` if it is too long.
fn find(name: &str, lines: &[&[u8]]) -> Option<Option<Vec<u8>>> {
    let head = Head {
        method: "GET",
        path: "/",
        headers: lines.iter().map(|line| ("cookie", *line)).collect(),
        ..Head::default()
    };
    let mut text = KeyText::default();
    find_cookie(&head, name, &mut text).then(|| text.get().map(<[u8]>::to_vec))
}

/// The same, found by looking at all cookies as owned pairs.
fn naively(name: &str, lines: &[&[u8]]) -> Option<Option<Vec<u8>>> {
    let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for line in lines {
        for cookie in line.split(|byte| *byte == b';' || *byte == b',') {
            let cookie = cookie.trim_ascii();
            if let Some(at) = cookie.iter().position(|byte| *byte == b'=') {
                pairs.push((cookie[..at].to_ascii_lowercase(), cookie[at + 1..].to_vec()));
            }
        }
    }
    let name = name.to_ascii_lowercase().into_bytes();
    let mut named = pairs.into_iter().rev();
    let (_, value) = named.find(|(known, value)| *known == name && !value.is_empty())?;
    let mut decoded = Vec::new();
    let mut rest = &*value;
    while let [byte, tail @ ..] = rest {
        let escaped = match (byte, tail) {
            (b'%', [high, low, ..]) => std::str::from_utf8(&[*high, *low])
                .ok()
                .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
                .and_then(|digits| u8::from_str_radix(digits, 16).ok()),
            _ => None,
        };
        decoded.push(escaped.unwrap_or(*byte));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    Some((decoded.len() <= 160).then_some(decoded))
}
