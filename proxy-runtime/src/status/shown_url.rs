//! URLs without possible secrets.

use crate::status::secret::{REDACTED, sounds_secret};

/// Returns `text` without the user information of a URL, and without values of query parameters
/// that may be secrets.
pub(crate) fn shown_url(text: &str) -> String {
    let (before, query) = match text.split_once('?') {
        Some((before, query)) => (before, Some(query)),
        None => (text, None),
    };
    let mut shown = without_user(before).unwrap_or_else(|| before.to_owned());
    for (at, pair) in query
        .into_iter()
        .flat_map(|query| query.split('&'))
        .enumerate()
    {
        shown.push(if at == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((name, _)) if sounds_secret(name) => {
                shown.push_str(name);
                shown.push('=');
                shown.push_str(REDACTED);
            }
            _ => shown.push_str(pair),
        }
    }
    shown
}

fn without_user(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    // User information stands before the path only.
    let authority = &rest[..rest.find(['/', '#']).unwrap_or(rest.len())];
    // The last `@`: a password may contain one that is not encoded.
    let (_, host) = authority.rsplit_once('@')?;
    let after = &rest[authority.len()..];
    Some(format!("{scheme}://{REDACTED}@{host}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_show_no_secrets() {
        let cases = [
            (
                "http://user:pass@proxy:3128/x",
                "http://(redacted)@proxy:3128/x",
            ),
            ("http://a.example/x@y", "http://a.example/x@y"),
            ("http://a.example", "http://a.example"),
            ("?token=x&team=blue", "?token=(redacted)&team=blue"),
            ("/p?a&sig=1=2&b=", "/p?a&sig=(redacted)&b="),
            (
                "http://u:p@a/p?key=x",
                "http://(redacted)@a/p?key=(redacted)",
            ),
            ("", ""),
        ];
        for (url, shown) in cases {
            assert_eq!(shown_url(url), shown);
        }
    }
}
