//! Addresses that registries name.

use std::net::IpAddr;

/// Returns true if the address can belong to one host. `0.0.0.0`, `::`, multicast addresses and the
/// broadcast address cannot: a connection to the first two would go to the proxy's own machine.
pub fn is_of_one_host(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !address.is_unspecified() && !address.is_multicast() && !is_broadcast
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
}
