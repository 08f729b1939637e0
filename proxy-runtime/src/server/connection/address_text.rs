//! An IP address as destinations are told it.

use std::io::{Cursor, Write};
use std::net::IpAddr;

/// The longest text of an address: eight groups of four digits.
const LONGEST: usize = 39;

/// The text of an IP address, where it is: a connection that is idle keeps no blocks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AddressText {
    length: u8,
    text: [u8; LONGEST],
}

impl AddressText {
    /// An address of version 4 that is written in version 6 is one of version 4.
    pub(super) fn new(address: IpAddr) -> Self {
        let mut text = [0; LONGEST];
        let mut cursor = Cursor::new(&mut text[..]);
        // There is room for every address; were there not, none would be better than a part of one.
        let written = write!(cursor, "{}", address.to_canonical());
        let length = written.map_or(0, |()| cursor.position() as u8);
        Self { length, text }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
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
