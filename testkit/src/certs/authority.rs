use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;

use super::{Alpn, Identity, Leaf, config};

/// A certificate authority for one test.
pub struct CertificateAuthority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl CertificateAuthority {
    /// Makes a new key and a self-signed certificate with this common name.
    pub fn new(name: &str) -> Self {
        let issuer = CertifiedIssuer::self_signed(params(name), key())
            .expect("these parameters make a valid certificate");
        Self { issuer }
    }

    /// Issues the certificate of another authority.
    pub fn issue_authority(&self, name: &str) -> Self {
        let issuer = CertifiedIssuer::signed_by(params(name), key(), &self.issuer)
            .expect("these parameters make a valid certificate");
        Self { issuer }
    }

    /// Issues a server's certificate for these names. A name may be an IP address, or begin with `*.`.
    pub fn issue(&self, names: &[&str]) -> Identity {
        self.issue_leaf(&Leaf::server(names))
    }

    /// Issues a client's certificate.
    pub fn issue_client(&self, name: &str) -> Identity {
        self.issue_leaf(&Leaf::client(name))
    }

    /// Issues a certificate described by `leaf`, for a new key.
    pub fn issue_leaf(&self, leaf: &Leaf) -> Identity {
        let key = key();
        let certificate = leaf
            .params()
            .signed_by(&key, &self.issuer)
            .expect("these parameters make a valid certificate");
        Identity::new(&certificate, &key)
    }

    /// The certificate of the authority.
    pub fn certificate(&self) -> CertificateDer<'static> {
        self.issuer.der().clone()
    }

    /// The certificate of the authority as PEM.
    pub fn certificate_pem(&self) -> String {
        self.issuer.pem()
    }

    /// A store that trusts only this authority.
    pub fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots
            .add(self.certificate())
            .expect("rcgen and rustls agree on what a certificate is");
        Arc::new(roots)
    }

    /// A client configuration that trusts only this authority, without a client certificate.
    pub fn client_config(&self, alpn: Alpn) -> ClientConfig {
        config::client(self.roots(), None, alpn)
    }

    /// A client configuration that trusts only this authority, with `identity` as client
    /// certificate.
    pub fn client_config_with(&self, identity: &Identity, alpn: Alpn) -> ClientConfig {
        config::client(self.roots(), Some(identity), alpn)
    }
}

fn key() -> KeyPair {
    KeyPair::generate().expect("P-256 keys can always be made")
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.not_before = date_time_ymd(2000, 1, 1);
    params.not_after = date_time_ymd(2999, 1, 1);
    params
}

impl std::fmt::Debug for CertificateAuthority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CertificateAuthority")
            .finish_non_exhaustive()
    }
}
