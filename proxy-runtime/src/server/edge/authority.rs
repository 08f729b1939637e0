//! Which host and port a request may name.

use std::net::Ipv6Addr;

/// Whether `authority` is `uri-host [":" port]` of RFC 9110 section 7.2, in the part of that grammar which names hosts
/// on a network: letters, digits, `-`, `.`, `_` and `~`, or an IPv6 address in brackets.
///
/// Userinfo, percent-encoding, commas, zone ids and the like have no use in `Host`, and are read differently by
/// different programs: an invitation to reach one host in the name of another.
pub(crate) fn is_valid(authority: &[u8]) -> bool {
    split(authority).is_some_and(|(host, port)| is_host(host) && port.is_none_or(is_port))
}

/// The two parts; the port is without its colon.
fn split(authority: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let end = match authority.first()? {
        b'[' => authority.iter().position(|&byte| byte == b']')? + 1,
        _ => authority
            .iter()
            .position(|&byte| byte == b':')
            .unwrap_or(authority.len()),
    };
    let (host, rest) = authority.split_at(end);
    match rest.split_first() {
        None => Some((host, None)),
        Some((b':', port)) => Some((host, Some(port))),
        Some(_) => None,
    }
}

fn is_host(host: &[u8]) -> bool {
    match host {
        [] => false,
        [b'[', address @ .., b']'] => {
            str::from_utf8(address).is_ok_and(|address| address.parse::<Ipv6Addr>().is_ok())
        }
        name => name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')),
    }
}

/// RFC 3986 section 3.2.3 allows an empty port.
fn is_port(port: &[u8]) -> bool {
    port.iter().all(u8::is_ascii_digit)
        && (port.is_empty() || str::from_utf8(port).is_ok_and(|port| port.parse::<u16>().is_ok()))
}

#[cfg(test)]
mod tests {
    use super::is_valid;

    #[test]
    fn hosts_of_a_network_are_valid() {
        for authority in [
            "t.example",
            "t.example:80",
            "t.example:",
            "t.example.",
            "T.Example:65535",
            "my_service:8080",
            "127.0.0.1:80",
            "[::1]",
            "[::1]:443",
            "[2001:db8::7:0]:0080",
            "xn--bcher-kva.example",
        ] {
            assert!(is_valid(authority.as_bytes()), "{authority}");
        }
    }

    #[test]
    fn anything_else_is_not() {
        for authority in [
            "",
            ":80",
            "u:p@t.example",
            "u@t.example",
            "t.ex ample",
            "t.example/x",
            "t.example?x",
            "t.example#x",
            "t.example\\x",
            "t.example, evil.example",
            "t.example,evil.example",
            "t.example:abc",
            "t.example:80:80",
            "t.example:65536",
            "t.example:+80",
            "t.example:99999999999999999999",
            "[::1",
            "::1",
            "[::1]x",
            "[::1]x:80",
            "[]",
            "[fe80::1%25eth0]",
            "[v1.x]",
            "[::1]]",
            "t%2eexample",
            "t\u{e9}.example",
            "t.example\0",
            "t.example\t",
        ] {
            assert!(!is_valid(authority.as_bytes()), "{authority}");
        }
    }
}
