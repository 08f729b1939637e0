//! Section `Admin`: the admin page and API.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use proxy_model::json::ObjectReader;
use proxy_model::{Problem, Problems};
use proxy_runtime::admin::AdminTokens;

use super::affinity::Secret;
use super::listener::read_address;
use super::tls::{self, Tls};
use crate::regular_file;

/// The default address.
const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9901);

/// The pointer to the key that names a file with tokens.
pub(crate) const TOKEN_FILE: &str = "/Admin/TokenFile";

/// The settings of the admin page and API.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Admin {
    pub(crate) address: SocketAddr,
    /// The host names that requests may have, beside IP addresses and `localhost`.
    pub(crate) hosts: Vec<String>,
    /// The tokens that requests need. `None`: they need none.
    pub(crate) tokens: Option<TokenSource>,
    /// `None`: cleartext.
    pub(crate) tls: Option<Tls>,
}

/// The place of the tokens.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TokenSource {
    /// The token is written in the configuration.
    Written(Secret),
    /// The tokens are in a file, which may change while the program runs.
    File(PathBuf),
}

impl Default for Admin {
    fn default() -> Self {
        Self {
            address: ADDRESS,
            hosts: Vec::new(),
            tokens: None,
            tls: None,
        }
    }
}

/// Reads the section. `None`: the admin page is switched off.
pub(super) fn read(root: &mut ObjectReader<'_, '_>) -> Option<Admin> {
    let read = root.object("Admin", |admin| {
        let enabled = admin.boolean("Enabled").unwrap_or(true);
        let read = Admin {
            address: read_address(admin).unwrap_or(ADDRESS),
            hosts: read_hosts(admin),
            tokens: read_tokens(admin),
            tls: admin.object("Tls", tls::read_for_one_name),
        };
        if enabled {
            judge_openness(&read, admin);
        }
        enabled.then_some(read)
    });
    read.unwrap_or_else(|| Some(Admin::default()))
}

/// Reads `Hosts`: names without ports.
fn read_hosts(admin: &mut ObjectReader<'_, '_>) -> Vec<String> {
    let hosts = admin.texts("Hosts").unwrap_or_default();
    for (position, host) in hosts.iter().enumerate() {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if host.is_empty() || !host.chars().all(is_name) {
            let pointer = format!("{}/{position}", admin.pointer_to("Hosts"));
            let message = format!("`{host}` is not a host name");
            let problem = Problem::error(pointer, "invalid_host", message)
                .with_suggestion("write `proxy.internal`, without scheme and port");
            admin.problems().push(problem);
        }
    }
    hosts
}

/// Reads `Token` and `TokenFile`.
fn read_tokens(admin: &mut ObjectReader<'_, '_>) -> Option<TokenSource> {
    let written = admin.text("Token");
    let file = admin.text("TokenFile");
    if let (Some(_), Some(_)) = (&written, &file) {
        let pointer = admin.pointer_to("TokenFile");
        let message = "there is `Token`, too, and only one of them can count";
        let problem = Problem::error(pointer, "conflicting_settings", message)
            .with_suggestion("keep `TokenFile`, so that no secret is in the configuration");
        admin.problems().push(problem);
    }
    if let Some(token) = written {
        if let Err(error) = AdminTokens::parse(&token) {
            let pointer = admin.pointer_to("Token");
            let problem = Problem::error(pointer, "invalid_token", error.to_string());
            admin.problems().push(problem);
        }
        return Some(TokenSource::Written(Secret::new(token)));
    }
    let file = file?;
    if file.is_empty() {
        let pointer = admin.pointer_to("TokenFile");
        let problem = Problem::error(pointer, "invalid_token", "`TokenFile` is empty")
            .with_suggestion("name a file with a token, or leave the key out");
        admin.problems().push(problem);
    }
    Some(TokenSource::File(file.into()))
}

/// Warns about an admin page that other machines can open without a token or a certificate.
fn judge_openness(read: &Admin, admin: &mut ObjectReader<'_, '_>) {
    let is_open = read.tokens.is_none() && !read.tls.as_ref().is_some_and(Tls::asks_clients);
    if read.address.ip().to_canonical().is_loopback() || !is_open {
        return;
    }
    let message = format!(
        "whoever reaches {} can read the configuration and the traffic",
        read.address
    );
    let problem = Problem::warning(admin.pointer_to("Address"), "open_admin", message)
        .with_suggestion(
            "set `TokenFile`, or `Tls` with `ClientCertificateMode` and `ClientCaFile`, or listen on `127.0.0.1`",
        );
    admin.problems().push(problem);
}

impl TokenSource {
    /// The file, if the tokens are in one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::Written(_) => None,
            Self::File(file) => Some(file),
        }
    }

    /// Returns the tokens as they are now, or one sentence about why there are none.
    pub(crate) fn tokens(&self) -> Result<AdminTokens, String> {
        match self {
            Self::Written(token) => {
                AdminTokens::parse(token.text()).map_err(|error| error.to_string())
            }
            Self::File(file) => {
                let shown = file.display();
                let text = regular_file::read_text(file)
                    .map_err(|error| format!("`{shown}` cannot be read: {error}"))?;
                AdminTokens::parse(&text).map_err(|error| format!("`{shown}`: {error}"))
            }
        }
    }

    /// Returns an error if the tokens cannot be used on this machine now.
    pub(crate) fn unusable(&self) -> Problems {
        let is_file = self.file().is_some();
        let problem = self.tokens().err().filter(|_| is_file).map(|error| {
            Problem::error(
                TOKEN_FILE,
                "unusable_token",
                format!("the tokens of the admin page cannot be used on this machine: {error}"),
            )
        });
        problem.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use proxy_model::json::parse_document;

    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn problems(section: &str) -> Vec<String> {
        let document = parse_document(&format!(r#"{{"Admin": {section}}}"#)).unwrap();
        let mut problems = Problems::new();
        let read = ObjectReader::read(&document, "", &mut problems, |root| read(root));
        assert!(!format!("{read:?}").contains(TOKEN), "{read:?}");
        let problems = problems.iter();
        problems
            .map(|problem| format!("{} {}", problem.code, problem.pointer))
            .collect()
    }

    #[test]
    fn an_open_page_on_other_addresses_than_loopback_is_a_warning() {
        let open = ["open_admin /Admin/Address"];
        let certificates =
            r#""Certificates": [{ "CertificateFile": "c.pem", "KeyFile": "k.pem" }]"#;
        for (rest, address, expected) in [
            ("", "0.0.0.0:9901", &open[..]),
            ("", "[::]:9901", &open),
            ("", "10.0.0.7:9901", &open),
            (
                &format!(r#", "Tls": {{ {certificates} }}"#),
                "10.0.0.7:9901",
                &open,
            ),
            ("", "127.0.0.2:9901", &[]),
            ("", "[::1]:9901", &[]),
            ("", "localhost:9901", &[]),
            (r#", "TokenFile": "token""#, "0.0.0.0:9901", &[]),
            (&format!(r#", "Token": "{TOKEN}""#), "0.0.0.0:9901", &[]),
            (r#", "Enabled": false"#, "0.0.0.0:9901", &[]),
            (
                &format!(
                    r#", "Tls": {{ {certificates}, "ClientCertificateMode": "AllowCertificate", "ClientCaFile": "ca.pem" }}"#
                ),
                "0.0.0.0:9901",
                &[],
            ),
        ] {
            let section = format!(r#"{{ "Address": "{address}"{rest} }}"#);
            assert_eq!(problems(&section), expected, "{section}");
        }
        assert!(problems("{}").is_empty());
    }

    #[test]
    fn what_cannot_be_honoured_is_an_error() {
        for (section, expected) in [
            (r#"{ "Token": "short" }"#, "invalid_token /Admin/Token"),
            (r#"{ "Token": "" }"#, "invalid_token /Admin/Token"),
            (r#"{ "TokenFile": "" }"#, "invalid_token /Admin/TokenFile"),
            (
                &format!(r#"{{ "Token": "{TOKEN}", "TokenFile": "t" }}"#),
                "conflicting_settings /Admin/TokenFile",
            ),
            (
                r#"{ "Hosts": ["a.example", "b.example:9901"] }"#,
                "invalid_host /Admin/Hosts/1",
            ),
            (
                r#"{ "Tls": { "Certificates": [] } }"#,
                "missing_certificate /Admin/Tls",
            ),
            (
                r#"{ "Address": "0.0.0.0:9901", "Token": "short" }"#,
                "invalid_token /Admin/Token",
            ),
        ] {
            assert_eq!(problems(section), [expected], "{section}");
        }
    }
}
