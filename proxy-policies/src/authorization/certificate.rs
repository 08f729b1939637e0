//! Clients by the certificate that they have presented to the listener, which has verified it.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;

use http::StatusCode;
use proxy_runtime::ClientCertificate;
use sha2::{Digest, Sha256};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

use super::{Claims, Judged};
use crate::config::{CERTIFICATE_TYPES, CertificateConfig, CertificateName};
use crate::head::Answer;

/// The certificates whose owners may use a route.
#[derive(Debug)]
pub(super) struct Certificates(CertificateConfig);

/// The contents of a certificate, read once for each connection.
#[derive(Debug)]
struct Identity {
    /// Dotted types with values, in the order of the certificate; a value is `None` if it is no text.
    subject: Vec<(String, Option<String>)>,
    names: Vec<CertificateName>,
    fingerprint: String,
    claims: Arc<Claims>,
}

impl Certificates {
    pub(super) fn new(config: &CertificateConfig) -> Self {
        Self(config.clone())
    }

    /// Returns the claims of a certificate that is admitted.
    ///
    /// # Errors
    ///
    /// There is none, or it is another one.
    pub(super) fn admit(
        &self,
        certificate: Option<&ClientCertificate>,
    ) -> Result<Arc<Claims>, Judged> {
        let read = certificate.map(|certificate| certificate.kept(Identity::read));
        let identity = read.as_deref().and_then(Option::as_ref);
        match identity.filter(|identity| self.admits(identity)) {
            Some(identity) => Ok(Arc::clone(&identity.claims)),
            None => Err(Judged::Denied(
                Answer::new(StatusCode::FORBIDDEN).saying("Forbidden."),
            )),
        }
    }

    fn admits(&self, identity: &Identity) -> bool {
        let Self(config) = self;
        let is_subject = config.subjects.as_ref().is_none_or(|subjects| {
            let mut subjects = subjects.iter();
            subjects.any(|wanted| identity.has(wanted))
        });
        let is_name = config.names.as_ref().is_none_or(|names| {
            let mut names = names.iter();
            names.any(|wanted| identity.names.iter().any(|name| meets(name, wanted)))
        });
        let is_fingerprint = config
            .fingerprints
            .as_ref()
            .is_none_or(|known| known.contains(&identity.fingerprint));
        is_subject && is_name && is_fingerprint
    }
}

impl Identity {
    /// `None` if it cannot be read, and then it meets no rule.
    fn read(der: &[u8]) -> Option<Self> {
        let (rest, certificate) = X509Certificate::from_der(der).ok()?;
        if !rest.is_empty() {
            return None;
        }
        let attributes = certificate.subject().iter_attributes();
        let subject: Vec<_> = attributes
            .map(|attribute| {
                let value = attribute.as_str().ok().map(str::to_owned);
                (attribute.attr_type().to_id_string(), value)
            })
            .collect();
        // Two extensions of the kind are an error, and then there are no names.
        let names = certificate.subject_alternative_name().ok().flatten();
        let names = names.map(|names| &*names.value.general_names);
        let names = names.unwrap_or_default().iter().filter_map(name).collect();
        let mut fingerprint = String::with_capacity(64);
        for byte in Sha256::digest(der) {
            let _ = write!(fingerprint, "{byte:02x}");
        }
        let claims = Claims::from([
            ("fingerprint".to_owned(), fingerprint.clone()),
            ("subject".to_owned(), text(&subject)),
        ]);
        Some(Self {
            subject,
            names,
            fingerprint,
            claims: Arc::new(claims),
        })
    }

    /// Returns true if the subject has these attributes, and no others of the same types: a second common name would
    /// make one certificate meet the rules for two clients.
    fn has(&self, wanted: &[(String, String)]) -> bool {
        let mut same: Vec<_> = (self.subject.iter())
            .filter(|(kind, _)| wanted.iter().any(|(wanted, _)| wanted == kind))
            .map(|(kind, value)| (kind, value.as_ref()))
            .collect();
        same.sort();
        let wanted = wanted.iter().map(|(kind, value)| (kind, Some(value)));
        same.into_iter().eq(wanted)
    }
}

fn name(name: &GeneralName<'_>) -> Option<CertificateName> {
    Some(match name {
        GeneralName::DNSName(name) => CertificateName::Dns(name.to_ascii_lowercase()),
        GeneralName::URI(uri) => CertificateName::Uri((*uri).to_owned()),
        GeneralName::RFC822Name(address) => CertificateName::Email((*address).to_owned()),
        GeneralName::IPAddress(octets) => CertificateName::Address(address(octets)?),
        _ => return None,
    })
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(octets).ok().map(IpAddr::from);
    v4.or_else(|| <[u8; 16]>::try_from(octets).ok().map(IpAddr::from))
}

fn meets(name: &CertificateName, wanted: &CertificateName) -> bool {
    match (name, wanted) {
        (CertificateName::Dns(name), CertificateName::BelowDns(below)) => {
            name.len() > below.len() && name.ends_with(below.as_str())
        }
        (CertificateName::Uri(uri), CertificateName::BelowUri(below)) => {
            let rest = uri.strip_prefix(below.as_str());
            // A path that goes up again is not below.
            rest.is_some_and(|rest| {
                !rest.is_empty() && !rest.contains('%') && rest.split('/').all(|part| part != "..")
            })
        }
        (name, wanted) => name == wanted,
    }
}

/// A subject in the form of RFC 4514, in ASCII: the most specific attribute first.
fn text(subject: &[(String, Option<String>)]) -> String {
    let mut text = String::new();
    for (kind, value) in subject.iter().rev() {
        let Some(value) = value else { continue };
        if !text.is_empty() {
            text.push(',');
        }
        let known = CERTIFICATE_TYPES.iter().find(|(_, number)| number == kind);
        text.push_str(known.map_or(kind, |(name, _)| name));
        text.push('=');
        for (position, byte) in value.bytes().enumerate() {
            let is_edge = position == 0 || position + 1 == value.len();
            match byte {
                b',' | b'+' | b'"' | b'\\' | b'<' | b'>' | b';' => {
                    text.push('\\');
                    text.push(char::from(byte));
                }
                b' ' | b'#' if is_edge => {
                    text.push('\\');
                    text.push(char::from(byte));
                }
                b' '..=b'~' => text.push(char::from(byte)),
                byte => {
                    let _ = write!(text, "\\{byte:02X}");
                }
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use testkit::certs::CertificateAuthority;

    use super::*;

    fn identity(subject: &[(&str, Option<&str>)], names: Vec<CertificateName>) -> Identity {
        let owned =
            |(kind, value): &(&str, Option<&str>)| ((*kind).to_owned(), value.map(str::to_owned));
        let subject: Vec<_> = subject.iter().map(owned).collect();
        Identity {
            claims: Arc::new(Claims::from([("subject".to_owned(), text(&subject))])),
            subject,
            names,
            fingerprint: "ab".repeat(32),
        }
    }

    fn rule(text: &str) -> Certificates {
        let text =
            format!(r#"{{"Policies":{{"Authorization":{{"p":{{"ClientCertificate":{text}}}}}}}}}"#);
        let document = proxy_model::json::parse_document(&text).unwrap();
        let mut problems = proxy_model::Problems::new();
        let policies = crate::read(&document, &mut problems);
        assert!(problems.is_empty(), "{problems}");
        let policy = policies.iter().next().unwrap();
        let config: crate::config::AuthorizationConfig =
            serde_json::from_value(policy.settings.clone()).unwrap();
        Certificates::new(&config.certificate.unwrap())
    }

    const CN: &str = "2.5.4.3";
    const O: &str = "2.5.4.10";

    #[test]
    fn a_subject_has_the_attributes_of_a_rule_and_no_others_of_their_types() {
        let rule = rule(r#"{"Subjects":["CN=orders,O=Example","CN=a\\,O=Example"]}"#);
        for (subject, expected) in [
            (&[(CN, Some("orders")), (O, Some("Example"))][..], true),
            (&[(O, Some("Example")), (CN, Some("orders"))], true),
            (
                &[
                    ("2.5.4.6", Some("DE")),
                    (CN, Some("orders")),
                    (O, Some("Example")),
                ],
                true,
            ),
            (&[(CN, Some("a,O=Example"))], true),
            (&[(CN, Some("orders"))], false),
            (&[(CN, Some("Orders")), (O, Some("Example"))], false),
            (&[(CN, Some("orders,O=Example"))], false),
            (
                &[
                    (CN, Some("orders")),
                    (CN, Some("other")),
                    (O, Some("Example")),
                ],
                false,
            ),
            (
                &[(CN, Some("orders")), (CN, None), (O, Some("Example"))],
                false,
            ),
            (&[], false),
        ] {
            let identity = identity(subject, Vec::new());
            assert_eq!(rule.admits(&identity), expected, "{subject:?}");
        }
    }

    #[test]
    fn names_are_met_by_their_kind() {
        use CertificateName::{Address, Dns, Email, Uri};
        let rule = rule(
            r#"{"Names":["api.example","*.svc.example","spiffe://e/ns/prod/*","spiffe://e/one","ann@e.example","10.0.0.1"]}"#,
        );
        let text = |text: &str| text.to_owned();
        for (name, expected) in [
            (Dns(text("api.example")), true),
            (Dns(text("b.api.example")), false),
            (Dns(text("a.svc.example")), true),
            (Dns(text("a.b.svc.example")), true),
            (Dns(text("svc.example")), false),
            (Dns(text(".svc.example")), false),
            (Dns(text("spiffe://e/one")), false),
            (Uri(text("spiffe://e/one")), true),
            (Uri(text("spiffe://e/ns/prod/a/b")), true),
            (Uri(text("spiffe://e/ns/prod/")), false),
            (Uri(text("spiffe://e/ns/prod/../x")), false),
            (Uri(text("spiffe://e/ns/prod/%2e%2e/x")), false),
            (Uri(text("spiffe://e/ns/product")), false),
            (Uri(text("api.example")), false),
            (Email(text("ann@e.example")), true),
            (Email(text("Ann@e.example")), false),
            (Address("10.0.0.1".parse().unwrap()), true),
            (Address("10.0.0.2".parse().unwrap()), false),
        ] {
            let identity = identity(&[], vec![name.clone()]);
            assert_eq!(rule.admits(&identity), expected, "{name:?}");
        }
        assert!(!rule.admits(&identity(&[(CN, Some("api.example"))], Vec::new())));
    }

    #[test]
    fn each_list_must_be_met() {
        let digits = "AB".repeat(32);
        let all = rule(&format!(
            r#"{{"Subjects":["CN=a"],"Names":["a.example"],"Fingerprints":["{digits}"]}}"#
        ));
        let names = vec![CertificateName::Dns("a.example".to_owned())];
        assert!(all.admits(&identity(&[(CN, Some("a"))], names.clone())));
        assert!(!all.admits(&identity(&[(CN, Some("b"))], names)));
        assert!(!all.admits(&identity(&[(CN, Some("a"))], Vec::new())));
        // Every certificate that the listener has verified.
        assert!(rule("{}").admits(&identity(&[], Vec::new())));
        assert!(rule("{}").admit(None).is_err(), "but one there must be");
    }

    #[test]
    fn certificates_are_read_as_they_are() {
        let authority = CertificateAuthority::new("clients");
        let client = authority.issue_client("ann, the first").certificate();
        let identity = Identity::read(&client).unwrap();
        assert!(identity.has(&[(CN.to_owned(), "ann, the first".to_owned())]));
        assert_eq!(identity.claims["subject"], "CN=ann\\, the first");
        assert_eq!(identity.fingerprint.len(), 64);
        assert!(Identity::read(&client[..client.len() - 1]).is_none());
        assert!(Identity::read(&[&client[..], b"x"].concat()).is_none());
    }

    #[test]
    fn the_subject_as_text_cannot_be_forged() {
        for (value, expected) in [
            ("a", "CN=a"),
            ("a,O=b", "CN=a\\,O=b"),
            (" a ", "CN=\\ a\\ "),
            ("#a\"+\\<>;", "CN=\\#a\\\"\\+\\\\\\<\\>\\;"),
            ("ü\r\n", "CN=\\C3\\BC\\0D\\0A"),
        ] {
            let identity = identity(&[(O, Some("x")), (CN, Some(value))], Vec::new());
            assert_eq!(
                identity.claims["subject"],
                format!("{expected},O=x"),
                "{value}"
            );
        }
    }
}
