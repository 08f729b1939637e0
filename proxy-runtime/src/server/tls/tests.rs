use testkit::certs::{CertificateAuthority, Leaf, provider};

use super::*;

fn certificate(names: &[&str]) -> Certificate {
    let identity = CertificateAuthority::new("test").issue(names);
    Certificate::from_der(vec![identity.certificate()], identity.key(), &provider()).unwrap()
}

fn error(result: Result<impl fmt::Debug, TlsConfigError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_certificate_knows_its_names_and_its_end() {
    let certificate = certificate(&["a.example", "*.B.example", "127.0.0.1"]);
    assert_eq!(certificate.names(), ["a.example", "*.b.example"]);
    assert!(certificate.expires_at().unwrap() > std::time::SystemTime::now());
}

#[test]
fn files_are_read_and_errors_name_them() {
    let provider = provider();
    let files = CertificateAuthority::new("test")
        .issue(&["a.example"])
        .write_pem();
    let (chain, key) = (files.certificate(), files.key());
    assert!(Certificate::from_pem_files(chain, key, &provider).is_ok());

    let swapped = error(Certificate::from_pem_files(key, chain, &provider));
    assert_eq!(
        swapped,
        format!(
            "{} has no certificate; expected a section -----BEGIN CERTIFICATE-----",
            key.display()
        )
    );
    let no_key = error(Certificate::from_pem_files(chain, chain, &provider));
    assert_eq!(
        no_key,
        format!(
            "{} has no private key; expected a section -----BEGIN PRIVATE KEY-----, not encrypted",
            chain.display()
        )
    );
    let missing = chain.with_file_name("missing.pem");
    let unreadable = error(Certificate::from_pem_files(&missing, key, &provider));
    assert_eq!(unreadable, format!("cannot read {}", missing.display()));
}

#[test]
fn a_key_of_another_certificate_is_rejected() {
    let authority = CertificateAuthority::new("test");
    let (one, other) = (
        authority.issue(&["a.example"]),
        authority.issue(&["a.example"]),
    );
    let result = Certificate::from_pem(
        one.certificate_pem().as_bytes(),
        other.key_pem().as_bytes(),
        &provider(),
    );
    assert_eq!(
        error(result),
        "the private key in the key's text does not belong to the certificate in the certificate's text"
    );
}

#[test]
fn what_is_no_certificate_is_rejected() {
    let identity = CertificateAuthority::new("test").issue(&["a.example"]);
    let result = Certificate::from_der(vec![vec![1, 2, 3].into()], identity.key(), &provider());
    assert!(
        matches!(result, Err(TlsConfigError::Certificate { .. })),
        "{result:?}"
    );
    let broken = b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
    let result = Certificate::from_pem(broken, identity.key_pem().as_bytes(), &provider());
    assert!(
        matches!(result, Err(TlsConfigError::Pem { .. })),
        "{result:?}"
    );
}

#[test]
fn an_expired_certificate_does_not_replace_others() {
    let authority = CertificateAuthority::new("test");
    let expired = authority.issue_leaf(&Leaf::server(&["a.example"]).expired());
    let expired =
        Certificate::from_der(vec![expired.certificate()], expired.key(), &provider()).unwrap();
    let store = CertificateStore::new([certificate(&["old.example"])]).unwrap();
    assert_eq!(
        error(store.replace([expired.clone()])),
        "the certificate in the chain for a.example has expired"
    );
    assert_eq!(store.certificates()[0].names(), ["old.example"]);
    assert!(
        CertificateStore::new([expired]).is_ok(),
        "better than nothing"
    );
}

#[test]
fn a_store_needs_certificates_that_somebody_is_shown() {
    assert!(matches!(
        CertificateStore::new([]),
        Err(TlsConfigError::Empty)
    ));
    let nameless = certificate(&["127.0.0.1"]);
    assert!(CertificateStore::new([nameless.clone()]).is_ok());
    let result = CertificateStore::new([certificate(&["a.example"]), nameless]);
    assert!(
        matches!(result, Err(TlsConfigError::NoNames { .. })),
        "{result:?}"
    );
}
