//! The order of connection attempts over addresses.

use std::net::IpAddr;

/// Maximum of addresses per name, so that a name with thousands of them costs no more than others.
const MAX_ADDRESSES: usize = 16;

/// Alternates the address families, beginning with that of the first address (RFC 8305 section 4).
pub(super) fn interleaved(addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    let Some(first) = addresses.first() else {
        return addresses;
    };
    let first_is_v6 = first.is_ipv6();
    let (preferred, other): (Vec<_>, Vec<_>) = addresses
        .into_iter()
        .partition(|address| address.is_ipv6() == first_is_v6);
    let mut mixed = Vec::new();
    let (mut preferred, mut other) = (preferred.into_iter(), other.into_iter());
    // RFC 8305 section 4: the families take turns.
    while mixed.len() < MAX_ADDRESSES {
        let before = mixed.len();
        mixed.extend(preferred.next());
        mixed.extend(other.next());
        if mixed.len() == before {
            break;
        }
    }
    mixed.truncate(MAX_ADDRESSES);
    mixed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(list: &[&str]) -> Vec<IpAddr> {
        list.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn families_alternate_and_the_first_stays_first() {
        assert_eq!(
            interleaved(addresses(&["::1", "::2", "::3", "1.1.1.1", "2.2.2.2"])),
            addresses(&["::1", "1.1.1.1", "::2", "2.2.2.2", "::3"])
        );
        assert_eq!(
            interleaved(addresses(&["1.1.1.1", "::1"])),
            addresses(&["1.1.1.1", "::1"])
        );
        assert_eq!(interleaved(Vec::new()), Vec::<IpAddr>::new());
    }

    #[test]
    fn no_more_than_the_limit_is_tried() {
        let many: Vec<IpAddr> = (0..200).map(|i| IpAddr::from([10, 0, 0, i])).collect();
        assert_eq!(interleaved(many.clone()), many[..MAX_ADDRESSES]);
    }
}
