//! Path normalisation: the routed path is the one that the destination sees.

use crate::strict_path::has_doubled_slashes;

/// The result of [`normalize`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// The path may stay as it is.
    AsSent,
    /// The path without its dot segments.
    Without(String),
    /// The path is ambiguous.
    Rejected(&'static str),
}

/// Removes the segments `.` and `..`, including the dot written as `%2e` (RFC 3986 sections 5.2.4
/// and 6.2.2.3), and rejects ambiguous paths: a segment such as `..;x`, `%00`, and a `%` without a
/// code.
///
/// All other bytes stay as sent, including `%2F` and doubled slashes: nothing is decoded, so
/// nothing is decoded twice. A `strict` reading also merges doubled slashes, and rejects encoded
/// slashes and parameters.
pub(crate) fn normalize(path: &str, strict: bool) -> Path {
    match inspect(path.as_bytes(), strict) {
        Ok(false) => Path::AsSent,
        Ok(true) => Path::Without(remove_segments(path, strict)),
        Err(reason) => Path::Rejected(reason),
    }
}

/// Returns true if there are segments to remove. Does not allocate.
fn inspect(path: &[u8], strict: bool) -> Result<bool, &'static str> {
    let has_doubled = strict && has_doubled_slashes(path)?;
    Ok(has_dot_segments(path)? || has_doubled)
}

fn has_dot_segments(path: &[u8]) -> Result<bool, &'static str> {
    // Most paths have neither, and are valid as they are.
    if !path.contains(&b'%') && !path.windows(2).any(|pair| pair == b"/.") {
        return Ok(false);
    }
    check_percent_encoding(path)?;
    let mut has_dots = false;
    for segment in path.split(|&byte| byte == b'/') {
        match dots(segment) {
            Dots::None => {}
            Dots::One | Dots::Two => has_dots = true,
            Dots::WithParameter => return Err("a dot segment of the path has a parameter"),
        }
    }
    Ok(has_dots)
}

fn check_percent_encoding(path: &[u8]) -> Result<(), &'static str> {
    let mut rest = path;
    while let Some(at) = rest.iter().position(|&byte| byte == b'%') {
        match &rest[at + 1..] {
            // For a program in C the text ends here.
            [b'0', b'0', ..] => return Err("the path has an encoded NUL"),
            [high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                rest = &rest[at + 3..];
            }
            _ => return Err("the path has a % without two hexadecimal digits"),
        }
    }
    Ok(())
}

enum Dots {
    None,
    One,
    Two,
    WithParameter,
}

fn dots(segment: &[u8]) -> Dots {
    let mut rest = segment;
    let mut count = 0;
    loop {
        rest = match rest {
            [b'.', rest @ ..] | [b'%', b'2', b'e' | b'E', rest @ ..] => rest,
            _ => break,
        };
        count += 1;
    }
    match (count, rest.first()) {
        // A server that strips parameters (`..;x`) sees a dot segment, while others see a name.
        (1, None) => Dots::One,
        (2, None) => Dots::Two,
        (1 | 2, Some(b';')) => Dots::WithParameter,
        // An encoded `;`.
        (1 | 2, Some(b'%')) if matches!(rest, [_, b'3', b'b' | b'B', ..]) => Dots::WithParameter,
        _ => Dots::None,
    }
}

/// Removes dot segments (RFC 3986 section 5.2.4): `..` above the root stays at the root. Empty
/// segments are removed before, if `and_empty`.
fn remove_segments(path: &str, and_empty: bool) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut ends_in_dots = false;
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        // The empty segment at the end is the slash of a directory.
        if and_empty && segment.is_empty() && segments.peek().is_some() {
            continue;
        }
        ends_in_dots = true;
        match dots(segment.as_bytes()) {
            Dots::One => {}
            Dots::Two => {
                kept.pop();
            }
            Dots::None | Dots::WithParameter => {
                kept.push(segment);
                ends_in_dots = false;
            }
        }
    }
    let mut normal = String::with_capacity(path.len());
    for segment in kept {
        normal.push('/');
        normal.push_str(segment);
    }
    // A path that ends in a dot segment is a directory.
    if ends_in_dots || normal.is_empty() {
        normal.push('/');
    }
    normal
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn without(path: &str) -> Path {
        Path::Without(path.to_owned())
    }

    #[test]
    fn ordinary_paths_stay_as_sent() {
        for path in [
            "/",
            "/a/b",
            "/a/b/",
            "//a",
            "/a//b",
            "/.well-known/x",
            "/a/.../b",
            "/a/..b",
            "/a/b..",
            "/.hidden",
            "/a%2fb",
            "/a%5c..%5cb",
            "/%252e%252e/b",
            "/a%0d%0aX:y",
            "/%E4%BD%A0",
            "*",
        ] {
            assert_eq!(normalize(path, false), Path::AsSent, "{path}");
        }
    }

    /// Paths that a lenient destination might read differently.
    #[test]
    fn a_strict_reading_is_the_same_for_all() {
        for path in ["/", "/a/b/", "*", "/a%20b", "/a.b/..c", "/%252f"] {
            assert_eq!(normalize(path, true), Path::AsSent, "{path}");
        }
        for (path, normal) in [
            ("//admin/x", "/admin/x"),
            ("/a///b//", "/a/b/"),
            ("//", "/"),
            ("/a//../b", "/b"),
            ("/a/.//b", "/a/b"),
            ("/x/..//admin", "/admin"),
        ] {
            assert_eq!(normalize(path, true), without(normal), "{path}");
        }
        for path in [
            "/admin%2fx",
            "/admin%2Fx",
            "/admin;a/x",
            "/admin%3Ba/x",
            "/x/..%2fadmin/x",
            "/x/..%5cadmin/x",
            "/x\\admin",
        ] {
            assert!(matches!(normalize(path, true), Path::Rejected(_)), "{path}");
        }
    }

    #[test]
    fn dot_segments_are_removed() {
        for (path, normal) in [
            ("/pub/../adm", "/adm"),
            ("/pub/%2e%2e/adm", "/adm"),
            ("/pub/%2E./adm", "/adm"),
            ("/pub/.%2e/adm", "/adm"),
            ("/a/./b", "/a/b"),
            ("/a/b/..", "/a/"),
            ("/a/b/.", "/a/b/"),
            ("/..", "/"),
            ("/../../a", "/a"),
            ("/a/../../b", "/b"),
            ("/a//../b", "/a/b"),
            ("/./", "/"),
            ("/%2e%2e%2f/../x", "/x"),
        ] {
            assert_eq!(normalize(path, false), without(normal), "{path}");
        }
    }

    #[test]
    fn paths_with_several_readings_are_rejected() {
        for path in [
            "/pub/..;/adm",
            "/pub/..;a=b/adm",
            "/pub/%2e%2e;/adm",
            "/pub/.;/adm",
            "/pub/..%3b/adm",
            "/a%00",
            "/a%zz",
            "/a%",
            "/a%2",
            "/a%2g",
        ] {
            assert!(
                matches!(normalize(path, false), Path::Rejected(_)),
                "{path}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_normal_path_is_rooted_and_stays_so(path in "/([a./;]|%2e|%2f){0,12}", strict: bool) {
            if let Path::Without(normal) = normalize(&path, strict) {
                prop_assert!(normal.starts_with('/'), "{normal}");
                prop_assert_eq!(normalize(&normal, strict), Path::AsSent);
            }
        }
    }
}
