use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyUsagePurpose, date_time_ymd};

/// The purpose of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// Authentication of a server.
    Server,
    /// Authentication of a client.
    Client,
}

/// The content of a certificate, for
/// [`CertificateAuthority::issue_leaf`](super::CertificateAuthority::issue_leaf).
///
/// ```
/// use testkit::certs::{CertificateAuthority, Leaf};
///
/// let ca = CertificateAuthority::new("test");
/// let expired = ca.issue_leaf(&Leaf::server(&["a.example"]).expired());
/// # drop(expired);
/// ```
#[derive(Clone, Debug)]
pub struct Leaf {
    names: Vec<String>,
    usage: Usage,
    validity: Validity,
}

#[derive(Clone, Copy, Debug)]
enum Validity {
    Now,
    Past,
    Future,
}

impl Leaf {
    /// A certificate for a server with these names. A name may be an IP address, or begin with
    /// `*.`.
    pub fn server(names: &[&str]) -> Self {
        Self::new(names, Usage::Server)
    }

    /// A certificate for a client with this name.
    pub fn client(name: &str) -> Self {
        Self::new(&[name], Usage::Client)
    }

    fn new(names: &[&str], usage: Usage) -> Self {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            names,
            usage,
            validity: Validity::Now,
        }
    }

    /// Valid from 2000 to 2001.
    #[must_use]
    pub fn expired(mut self) -> Self {
        self.validity = Validity::Past;
        self
    }

    /// Valid from 3000 to 3001.
    #[must_use]
    pub fn not_yet_valid(mut self) -> Self {
        self.validity = Validity::Future;
        self
    }

    pub(super) fn params(&self) -> CertificateParams {
        let mut params = CertificateParams::new(self.names.clone())
            .expect("names of a test certificate are DNS names or IP addresses");
        let common_name = self.names.first().map_or("nobody", String::as_str);
        params
            .distinguished_name
            .push(DnType::CommonName, common_name);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![match self.usage {
            Usage::Server => ExtendedKeyUsagePurpose::ServerAuth,
            Usage::Client => ExtendedKeyUsagePurpose::ClientAuth,
        }];
        (params.not_before, params.not_after) = match self.validity {
            Validity::Now => (date_time_ymd(2000, 1, 1), date_time_ymd(2999, 1, 1)),
            Validity::Past => (date_time_ymd(2000, 1, 1), date_time_ymd(2001, 1, 1)),
            Validity::Future => (date_time_ymd(3000, 1, 1), date_time_ymd(3001, 1, 1)),
        };
        params
    }
}
