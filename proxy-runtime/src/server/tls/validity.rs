//! The end of a certificate's validity: the one field of X.509 that the TLS library does not
//! expose.

use std::time::SystemTime;

use jiff::civil::DateTime;

use crate::server::civil;

/// The time of `notAfter` (RFC 5280 section 4.1.2.5). `None` if the certificate cannot be parsed
/// that far. It may be used nevertheless, since clients decide about its validity.
pub(super) fn not_after(certificate: &[u8]) -> Option<SystemTime> {
    // Certificate, tbsCertificate
    let mut fields = Der(Der(certificate).take(SEQUENCE)?)
        .take(SEQUENCE)
        .map(Der)?;
    // version
    if fields.0.first() == Some(&EXPLICIT_0) {
        fields.take(EXPLICIT_0)?;
    }
    // serialNumber, signature, issuer
    fields.take(INTEGER)?;
    fields.take(SEQUENCE)?;
    fields.take(SEQUENCE)?;
    let mut validity = Der(fields.take(SEQUENCE)?);
    // `notBefore` comes first.
    validity.take_time()?;
    validity.take_time()
}

const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const EXPLICIT_0: u8 = 0xa0;

/// The rest of a sequence of elements in DER (X.690).
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// Returns the content of the next element, if it has this tag.
    fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (&first, rest) = self.0.split_first()?;
        if first != tag {
            return None;
        }
        let (&length, rest) = rest.split_first()?;
        let (length, rest) = match length {
            0..=0x7f => (usize::from(length), rest),
            // A certificate in a TLS handshake has a length of at most three bytes.
            0x81..=0x83 => {
                // The low bits are the number of the bytes of the length (X.690 section 8.1.3.5).
                let (digits, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
                let length = digits
                    .iter()
                    .fold(0, |length, digit| (length << 8) | usize::from(*digit));
                (length, rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(content)
    }

    fn take_time(&mut self) -> Option<SystemTime> {
        let tag = *self.0.first()?;
        // RFC 5280 section 4.1.2.5 requires UTC.
        let text = str::from_utf8(self.take(tag)?).ok()?.strip_suffix('Z')?;
        // `parse` would accept a sign.
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let (year, rest): (i16, _) = match (tag, text.len()) {
            // Two digits mean 1950 to 2049.
            (UTC_TIME, 12) => {
                let year: i16 = text[..2].parse().ok()?;
                (
                    if year < 50 { 2000 + year } else { 1900 + year },
                    &text[2..],
                )
            }
            (GENERALIZED_TIME, 14) => (text[..4].parse().ok()?, &text[4..]),
            _ => return None,
        };
        let number = |at: usize| rest[at..at + 2].parse::<i8>().ok();
        let (month, day) = (number(0)?, number(2)?);
        let time = DateTime::new(year, month, day, number(4)?, number(6)?, number(8)?, 0).ok()?;
        civil::moment(time)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use testkit::certs::{CertificateAuthority, Leaf};

    use super::*;

    fn seconds(certificate: &[u8]) -> Option<u64> {
        let moment = not_after(certificate)?;
        Some(moment.duration_since(UNIX_EPOCH).unwrap().as_secs())
    }

    #[test]
    fn the_end_of_validity_is_read_in_both_forms() {
        let authority = CertificateAuthority::new("test");
        let leaf = Leaf::server(&["t.example"]);
        let expired = authority.issue_leaf(&leaf.clone().expired());
        assert_eq!(
            seconds(&expired.certificate()),
            Some(978_307_200),
            "2001-01-01"
        );
        let valid = authority.issue_leaf(&leaf);
        assert_eq!(
            seconds(&valid.certificate()),
            Some(32_472_144_000),
            "2999-01-01"
        );
    }

    #[test]
    fn nothing_that_is_no_certificate_makes_it_panic() {
        let authority = CertificateAuthority::new("test");
        let certificate = authority.certificate();
        for end in 0..certificate.len() {
            let _ = not_after(&certificate[..end]);
        }
        for at in 0..certificate.len().min(200) {
            for byte in [0, 0x7f, 0x80, 0x83, 0x84, 0xff] {
                let mut broken = certificate.to_vec();
                broken[at] = byte;
                let _ = not_after(&broken);
            }
        }
        assert_eq!(not_after(&[]), None);
        let year = Duration::from_secs(1);
        assert!(not_after(&certificate).unwrap() > UNIX_EPOCH + year);
    }
}
