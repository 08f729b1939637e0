//! Thumbprints.

use std::fmt;
use std::str::FromStr;

use discovery_core::text::shortened;
use rustls::pki_types::CertificateDer;
use sha1::{Digest, Sha1};

use super::TlsError;

/// The SHA-1 hash of a certificate, by which Service Fabric and Windows name certificates.
///
/// Collisions of SHA-1 can be made. An attacker would need a second certificate for a given hash here,
/// which cannot be made.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Thumbprint([u8; 20]);

impl Thumbprint {
    /// Returns the thumbprint of a certificate.
    pub(super) fn of(certificate: &CertificateDer<'_>) -> Self {
        Self(Sha1::digest(certificate.as_ref()).into())
    }
}

impl FromStr for Thumbprint {
    type Err = TlsError;

    /// Reads 40 hexadecimal digits in any case. Colons, dashes and white space between them are ignored,
    /// and so is the invisible mark that the certificate dialog of Windows puts before them.
    fn from_str(text: &str) -> Result<Self, TlsError> {
        let wrong = || TlsError::Thumbprint(shortened(text, 80));
        let mut bytes = [0; 20];
        let mut count = 0;
        for c in text.chars() {
            if c.is_whitespace() || matches!(c, ':' | '-' | '\u{200e}' | '\u{200f}' | '\u{feff}') {
                continue;
            }
            let digit = c.to_digit(16).ok_or_else(wrong)?;
            let byte = bytes.get_mut(count / 2).ok_or_else(wrong)?;
            *byte = *byte << 4 | u8::try_from(digit).expect("a hexadecimal digit is below 16");
            count += 1;
        }
        if count != 40 {
            return Err(wrong());
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Thumbprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

impl fmt::Debug for Thumbprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thumbprints_are_read_as_people_paste_them() {
        let plain = "0123456789abcdef0123456789ABCDEF01234567";
        let expected: Thumbprint = plain.parse().unwrap();
        assert_eq!(expected.to_string(), plain.to_uppercase());
        assert_eq!(format!("{expected:?}"), plain.to_uppercase());
        for text in [
            "01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF:01:23:45:67",
            " 01 23 45 67 89 ab cd ef 01 23 45 67 89 ab cd ef 01 23 45 67\n",
            "\u{200e}0123456789abcdef0123456789abcdef01234567",
            "01234567-89abcdef-01234567-89abcdef-01234567",
        ] {
            assert_eq!(text.parse::<Thumbprint>().unwrap(), expected, "{text}");
        }
        let sha256 = "ab".repeat(32);
        for text in [
            "",
            "0123",
            &plain[1..],
            "x123456789abcdef0123456789ABCDEF01234567",
            &sha256,
            "０123456789abcdef0123456789ABCDEF01234567",
        ] {
            let error = text.parse::<Thumbprint>().unwrap_err().to_string();
            assert!(error.contains("40 hexadecimal digits"), "{error}");
        }
    }

    #[test]
    fn a_thumbprint_is_the_hash_of_the_whole_certificate() {
        let certificate = CertificateDer::from(b"abc".to_vec());
        assert_eq!(
            Thumbprint::of(&certificate).to_string(),
            "A9993E364706816ABA3E25717850C26C9CD0D89D"
        );
    }
}
