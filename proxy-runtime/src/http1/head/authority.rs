//! Host and port of requests: `uri-host [":" port]` of RFC 9110 section 7.2.

use std::net::Ipv6Addr;

use crate::http1::bytes::host_end;

/// Returns true if `authority` is a network host with an optional port: letters, digits, `-`, `.`,
/// `_` and `~`, or an IPv6 address in brackets.
///
/// Userinfo, percent-encoding, commas and zone ids have no use in `Host`. Programs interpret them
/// differently, so an attacker could reach one host in the name of another.
#[inline]
pub(crate) fn is_authority(authority: &[u8]) -> bool {
    authority_end(authority) == Some(authority.len())
}

/// The length of the authority at the front of `bytes`; `None` if there is none.
#[inline]
pub(super) fn authority_end(bytes: &[u8]) -> Option<usize> {
    let host = match bytes.first()? {
        b'[' => bracketed_end(bytes)?,
        _ => host_end(bytes, 0),
    };
    match bytes.get(host) {
        _ if host == 0 => None,
        Some(b':') => port_end(bytes, host + 1),
        _ => Some(host),
    }
}

fn bracketed_end(bytes: &[u8]) -> Option<usize> {
    // Future versions of addresses (RFC 3986 section 3.2.2) do not exist.
    let close = bytes.iter().position(|byte| *byte == b']')?;
    let address = str::from_utf8(&bytes[1..close]).ok()?;
    address.parse::<Ipv6Addr>().ok().map(|_| close + 1)
}

/// The end of the port, which may be empty (RFC 3986 section 3.2.3).
fn port_end(bytes: &[u8], start: usize) -> Option<usize> {
    let rest = &bytes[start..];
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    // A port beyond 65535 is none.
    let number = rest[..digits].iter().try_fold(0_u16, |number, digit| {
        number.checked_mul(10)?.checked_add(u16::from(digit - b'0'))
    });
    number.map(|_| start + digits)
}

#[cfg(test)]
mod tests {
    use super::is_authority;

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
            assert!(is_authority(authority.as_bytes()), "{authority}");
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
            assert!(!is_authority(authority.as_bytes()), "{authority}");
        }
    }
}
