//! One certificate for all proxies, and the TLS settings of the generator.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{ClientConfig, RootCertStore};

use crate::load::HOST;
use crate::proxies::Certificate;

/// Creates a certificate (ECDSA P-256), writes it below `directory`, and returns a configuration
/// that trusts only it.
pub(crate) fn prepare(directory: &Path) -> io::Result<(Certificate, Arc<ClientConfig>)> {
    let key = KeyPair::generate().map_err(io::Error::other)?;
    let parameters = CertificateParams::new(vec![HOST.to_owned()]).map_err(io::Error::other)?;
    let certificate = parameters.self_signed(&key).map_err(io::Error::other)?;
    let files = Certificate {
        chain: directory.join("certificate.pem"),
        key: directory.join("key.pem"),
        both: directory.join("both.pem"),
    };
    fs::write(&files.chain, certificate.pem())?;
    fs::write(&files.key, key.serialize_pem())?;
    fs::write(&files.both, certificate.pem() + &key.serialize_pem())?;

    let mut roots = RootCertStore::empty();
    roots
        .add(certificate.der().clone())
        .map_err(io::Error::other)?;
    // One suite and one group, so that no proxy negotiates a cheaper one. No resumption: each
    // handshake is complete.
    let provider = CryptoProvider {
        cipher_suites: vec![aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256],
        kx_groups: vec![aws_lc_rs::kx_group::X25519],
        ..aws_lc_rs::default_provider()
    };
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.resumption = Resumption::disabled();
    Ok((files, Arc::new(config)))
}
