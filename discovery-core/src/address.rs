//! Addresses that registries name, and names of this machine.

use std::net::IpAddr;

/// Returns true if the address can belong to one host. `0.0.0.0`, `::`, multicast addresses and the
/// broadcast address cannot: a connection to the first two would go to the proxy's own machine.
pub fn is_of_one_host(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !address.is_unspecified() && !address.is_multicast() && !is_broadcast
}

/// Returns true if no other party can make a web page's requests to `host` reach this machine (DNS rebinding): for IP
/// addresses, also in brackets, for `localhost` and for names below it. The owner of any other name can. `host` has no
/// port.
pub fn is_safe_from_rebinding(host: &str) -> bool {
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let is_below = |name: &str| host.len() > name.len() && ends_with(host, name);
    bare.unwrap_or(host).parse::<IpAddr>().is_ok()
        || host.eq_ignore_ascii_case("localhost")
        || is_below(".localhost")
}

/// Returns true if a text ends with another, ignoring the case of ASCII letters.
fn ends_with(text: &str, end: &str) -> bool {
    let at = text.len().checked_sub(end.len());
    let last = at.and_then(|at| text.get(at..));
    last.is_some_and(|last| last.eq_ignore_ascii_case(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_for_no_host_is_told_apart() {
        for (address, expected) in [
            ("10.0.0.1", true),
            ("127.0.0.1", true),
            ("2a02:6b8::1", true),
            ("0.0.0.0", false),
            ("::", false),
            ("::ffff:0.0.0.0", false),
            ("255.255.255.255", false),
            ("224.0.0.1", false),
            ("ff02::1", false),
        ] {
            assert_eq!(
                is_of_one_host(address.parse().unwrap()),
                expected,
                "{address}"
            );
        }
    }

    #[test]
    fn names_that_others_own_are_not_safe() {
        for (host, expected) in [
            ("127.0.0.1", true),
            ("10.0.0.7", true),
            ("::1", true),
            ("[::1]", true),
            ("localhost", true),
            ("LocalHost", true),
            ("admin.localhost", true),
            ("Admin.LOCALHOST", true),
            ("", false),
            (".localhost", false),
            ("[localhost]", false),
            ("[127.0.0.1", false),
            ("evil.example", false),
            ("notlocalhost", false),
            ("ülocalhost", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
        ] {
            assert_eq!(is_safe_from_rebinding(host), expected, "{host}");
        }
    }
}
