//! The authorities for clients.

use std::time::UNIX_EPOCH;

use rustls::RootCertStore;
use rustls_pki_types::{CertificateDer, UnixTime};
use webpki::{EndEntityCert, KeyUsage};

use super::error::TlsConfigError;
use super::validity;

/// Returns the store of authorities.
///
/// # Errors
///
/// One cannot be parsed, or none of them could have issued a certificate, so that every client would be rejected.
pub(super) fn roots(
    authorities: &[CertificateDer<'static>],
) -> Result<RootCertStore, TlsConfigError> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots
            .add(authority.clone())
            .map_err(TlsConfigError::ClientAuthority)?;
    }
    // An empty list fails when the verifier is built.
    if !authorities.is_empty() && !authorities.iter().any(certifies) {
        return Err(TlsConfigError::NoAuthority);
    }
    Ok(roots)
}

/// Returns true if clients with certificates of this one can be accepted: it is an authority, or may be presented
/// itself. In doubt true.
fn certifies(certificate: &CertificateDer<'_>) -> bool {
    let Ok(parsed) = EndEntityCert::try_from(certificate) else {
        return true;
    };
    if parsed.issuer() == parsed.subject() {
        return true;
    }
    // At a valid time, since an expired certificate would fail with another error.
    let valid = validity::not_after(certificate);
    let Some(valid) = valid.and_then(|time| time.duration_since(UNIX_EPOCH).ok()) else {
        return true;
    };
    // The library shows `basicConstraints` in this error alone, which comes before those of the issuer.
    let used = parsed.verify_for_usage(
        &[],
        &[],
        &[],
        UnixTime::since_unix_epoch(valid),
        KeyUsage::client_auth(),
        None,
        None,
    );
    matches!(used, Err(webpki::Error::CaUsedAsEndEntity))
}

#[cfg(test)]
mod tests {
    use testkit::certs::{CertificateAuthority, Leaf};

    use super::*;

    #[test]
    fn a_certificate_of_a_client_is_no_authority() {
        let authority = CertificateAuthority::new("clients");
        let client = authority.issue_client("one").certificate();
        let server = authority
            .issue_leaf(&Leaf::server(&["a.example"]))
            .certificate();
        for wrong in [vec![client.clone()], vec![server, client.clone()]] {
            assert!(matches!(roots(&wrong), Err(TlsConfigError::NoAuthority)));
        }
        // A bundle may have more than authorities.
        let intermediate = authority.issue_authority("team").certificate();
        for right in [
            vec![authority.certificate()],
            vec![intermediate],
            vec![client, authority.certificate()],
        ] {
            assert_eq!(roots(&right).unwrap().len(), right.len());
        }
    }
}
