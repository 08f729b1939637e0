//! `Tls` of a listener or of the admin page: certificates, versions, and certificates of clients.

use std::collections::HashSet;
use std::path::PathBuf;

use proxy_model::json::ObjectReader;
use proxy_model::matching::host_to_ascii;
use proxy_model::{Problem, pointer_to};

/// The TLS settings of a listener or of the admin page.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tls {
    pub(crate) certificates: Vec<Certificate>,
    /// The rules for clients that send no server name (SNI), or one without rules in `by_name`.
    pub(crate) default: Handshakes,
    /// The rules by the server name that clients send. A name may begin with `*.`.
    pub(crate) by_name: Vec<(String, Handshakes)>,
}

/// A certificate chain and its key, for the names in the certificate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Certificate {
    pub(crate) certificate_file: PathBuf,
    pub(crate) key_file: PathBuf,
}

/// The rules of handshakes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Handshakes {
    pub(crate) clients: Clients,
    pub(crate) requires_tls13: bool,
}

/// The certificates that clients must present.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Clients {
    /// Clients need no certificate.
    #[default]
    Off,
    /// Clients may present a certificate that an authority in this file has issued.
    Optional(PathBuf),
    /// Clients must present a certificate that an authority in this file has issued.
    Required(PathBuf),
}

/// The keys of one section as they are written.
#[derive(Clone, Default)]
struct Written {
    mode: Option<Mode>,
    authorities: Option<PathBuf>,
    requires_tls13: Option<bool>,
}

/// The names of ASP.NET's `ClientCertificateMode`.
#[expect(clippy::enum_variant_names, reason = "the names that operators write")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    NoCertificate,
    AllowCertificate,
    RequireCertificate,
    DelayCertificate,
}

const MODES: [(&str, Mode); 4] = [
    ("NoCertificate", Mode::NoCertificate),
    ("AllowCertificate", Mode::AllowCertificate),
    ("RequireCertificate", Mode::RequireCertificate),
    ("DelayCertificate", Mode::DelayCertificate),
];

const VERSIONS: [(&str, bool); 2] = [("Tls12", false), ("Tls13", true)];

const MODE: &str = "ClientCertificateMode";
const AUTHORITIES: &str = "ClientCaFile";

pub(super) fn read(tls: &mut ObjectReader<'_, '_>) -> Tls {
    let (mut read, own) = read_own(tls);
    read.by_name = read_by_name(tls, &own);
    read
}

/// Reads TLS settings without `Sni`.
pub(super) fn read_for_one_name(tls: &mut ObjectReader<'_, '_>) -> Tls {
    read_own(tls).0
}

fn read_own(tls: &mut ObjectReader<'_, '_>) -> (Tls, Written) {
    let certificates = tls.list("Certificates", |node, pointer, problems| {
        ObjectReader::read(node, pointer, problems, |certificate| {
            let certificate_file = read_path(certificate, "CertificateFile");
            let key_file = read_path(certificate, "KeyFile");
            Some(Certificate {
                certificate_file: certificate_file?,
                key_file: key_file?,
            })
        })?
    });
    let certificates = certificates.unwrap_or_default();
    if certificates.is_empty() {
        let problem = Problem::error(
            tls.pointer(),
            "missing_certificate",
            "TLS needs at least one certificate in `Certificates`",
        );
        tls.problems().push(problem);
    }
    let own = read_written(tls);
    let default = handshakes(tls, &own, &Written::default());
    let read = Tls {
        certificates,
        default,
        by_name: Vec::new(),
    };
    (read, own)
}

fn read_by_name(tls: &mut ObjectReader<'_, '_>, own: &Written) -> Vec<(String, Handshakes)> {
    let mut names = HashSet::new();
    let by_name = tls.entries("Sni", |name, node, pointer, problems| {
        ObjectReader::read(node, pointer, problems, |section| {
            let name = read_name(name, section);
            // One of them would decide who may connect, and the other would be silent.
            if let Some(name) = name.as_ref().filter(|name| !names.insert((*name).clone())) {
                let message = format!("another section is for the same name, `{name}`");
                let problem = Problem::error(section.pointer(), "duplicate_server_name", message);
                section.problems().push(problem);
            }
            let written = read_written(section);
            let rules = handshakes(section, &written, own);
            name.map(|name| (name, rules))
        })?
    });
    let by_name = by_name.unwrap_or_default().into_iter();
    by_name.map(|(_, read)| read).collect()
}

fn read_written(section: &mut ObjectReader<'_, '_>) -> Written {
    let mode = section.choice(MODE, &MODES);
    if mode == Some(Mode::DelayCertificate) {
        let message = "clients present certificates in the handshake or not at all";
        let problem = Problem::error(section.pointer_to(MODE), "unsupported_value", message);
        let problem = problem.with_suggestion(
            "write `AllowCertificate`, and the authorities of clients in `ClientCaFile`",
        );
        section.problems().push(problem);
    }
    Written {
        mode,
        authorities: section.text(AUTHORITIES).map(PathBuf::from),
        requires_tls13: section.choice("MinVersion", &VERSIONS),
    }
}

/// Returns the rules of a section, whose unset keys are those of `outer`.
fn handshakes(section: &mut ObjectReader<'_, '_>, own: &Written, outer: &Written) -> Handshakes {
    let mode = own.mode.or(outer.mode).unwrap_or_default();
    let authorities = own.authorities.as_ref().or(outer.authorities.as_ref());
    let authorities = authorities.filter(|path| !path.as_os_str().is_empty());
    let clients = match (mode, authorities) {
        (Mode::NoCertificate, _) => {
            // Names of the section may use the file.
            let has_names = section.peek("Sni").is_some();
            if own.authorities.is_some() && (own.mode.is_some() || !has_names) {
                let message = "clients need no certificate, so the file is not used";
                let pointer = section.pointer_to(AUTHORITIES);
                section
                    .problems()
                    .push(Problem::warning(pointer, "no_effect", message));
            }
            Clients::Off
        }
        // Reported where it was read.
        (Mode::DelayCertificate, _) => Clients::Off,
        (Mode::AllowCertificate, Some(path)) => Clients::Optional(path.clone()),
        (Mode::RequireCertificate, Some(path)) => Clients::Required(path.clone()),
        (Mode::AllowCertificate | Mode::RequireCertificate, None) => {
            let message = format!(
                "`{AUTHORITIES}` is missing: a PEM file with the authorities that certify clients"
            );
            let problem = Problem::error(section.pointer(), "missing_file", message);
            section.problems().push(problem);
            Clients::Off
        }
    };
    Handshakes {
        clients,
        requires_tls13: own.requires_tls13.or(outer.requires_tls13).unwrap_or(false),
    }
}

/// Reads the key of a section in `Sni`: a name, which may begin with `*.`.
fn read_name(name: &str, section: &mut ObjectReader<'_, '_>) -> Option<String> {
    let plain = name.strip_prefix("*.").unwrap_or(name);
    let ascii = host_to_ascii(plain).filter(|ascii| {
        let is_label = |label: &str| {
            !label.is_empty()
                && label
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
        };
        ascii.parse::<std::net::IpAddr>().is_err() && ascii.split('.').all(is_label)
    });
    let Some(ascii) = ascii else {
        let problem = Problem::error(
            section.pointer(),
            "invalid_server_name",
            "clients send a DNS name, without a port",
        );
        let suggestion =
            "write `admin.example` or `*.example`; settings for all other names belong into `Tls`";
        section.problems().push(problem.with_suggestion(suggestion));
        return None;
    };
    let ascii = ascii.to_ascii_lowercase();
    match plain.len() == name.len() {
        true => Some(ascii),
        false => Some(format!("*.{ascii}")),
    }
}

fn read_path(object: &mut ObjectReader<'_, '_>, key: &'static str) -> Option<PathBuf> {
    let read = object.text(key).filter(|path| !path.is_empty());
    if read.is_none() {
        let message = format!("`{key}` is missing: the path of a PEM file");
        let problem = Problem::error(object.pointer(), "missing_file", message);
        object.problems().push(problem);
    }
    read.map(PathBuf::from)
}

impl Tls {
    /// Returns true if clients are asked for certificates, by some name at least.
    pub(crate) fn asks_clients(&self) -> bool {
        let by_name = self.by_name.iter().map(|(_, rules)| rules);
        let mut all = by_name.chain([&self.default]);
        all.any(|rules| rules.clients != Clients::Off)
    }

    /// Returns the files with authorities for clients and their places below `Tls`.
    pub(crate) fn authorities(&self) -> impl Iterator<Item = (String, &PathBuf)> {
        let named = self.by_name.iter();
        let named = named.map(|(name, rules)| (pointer_to("/Sni", name), rules));
        let all = std::iter::once((String::new(), &self.default)).chain(named);
        all.filter_map(|(pointer, rules)| match &rules.clients {
            Clients::Off => None,
            Clients::Optional(path) | Clients::Required(path) => {
                Some((format!("{pointer}/{AUTHORITIES}"), path))
            }
        })
    }
}
