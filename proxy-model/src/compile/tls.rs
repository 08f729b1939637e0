//! Certificates and names of a cluster's own for TLS to its destinations.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use url::Host;

use super::{Scope, filled};
use crate::compiled::TlsFiles;
use crate::config::{ClientCertificateConfig, ClusterConfig, HttpClientConfig};
use crate::matching::host_to_ascii;
use crate::suggest::shortened;

/// The TLS settings of one cluster that differ from those of the program.
pub(super) struct OwnTls {
    pub(super) files: Option<TlsFiles>,
    pub(super) server_name: Option<Arc<str>>,
}

/// `scope` is that of `client`, the section `HttpClient` of `cluster`.
pub(super) fn compile(
    cluster: &ClusterConfig,
    client: &HttpClientConfig,
    scope: &mut Scope<'_>,
) -> Option<OwnTls> {
    let certificate = match &client.client_certificate {
        Some(config) => Some(certificate(config, &mut scope.below("ClientCertificate"))?),
        None => None,
    };
    let authorities = match &client.ca_file {
        Some(path) => Some(file(Some(path), "CaFile", scope)?),
        None => None,
    };
    if authorities.is_some() && client.dangerous_accept_any_server_certificate == Some(true) {
        scope.error_with(
            "DangerousAcceptAnyServerCertificate",
            "conflicting_trust",
            "any certificate is trusted, so `CaFile` would restrict nothing",
            "leave out one of the two",
        );
    }
    let server_name = match filled(client.server_name.as_ref()) {
        Some(text) => Some(server_name(text, scope)?),
        None => None,
    };
    warn_without_https(cluster, client, scope);
    let has_files = certificate.is_some() || authorities.is_some();
    Some(OwnTls {
        files: has_files.then_some(TlsFiles {
            certificate,
            authorities,
        }),
        server_name,
    })
}

fn certificate(
    config: &ClientCertificateConfig,
    scope: &mut Scope<'_>,
) -> Option<(PathBuf, PathBuf)> {
    let chain = file(config.path.as_deref(), "Path", scope)?;
    let key = match &config.key_path {
        Some(path) => file(Some(path), "KeyPath", scope)?,
        None => chain.clone(),
    };
    Some((chain, key))
}

fn file(path: Option<&Path>, key: &str, scope: &mut Scope<'_>) -> Option<PathBuf> {
    let path = path.filter(|path| !path.as_os_str().is_empty());
    if path.is_none() {
        scope.error_with(
            key,
            "missing_file",
            format!("`{key}` has no path"),
            "write the path of a PEM file",
        );
    }
    path.map(Path::to_owned)
}

/// Checks a name or IP address without a port. Unicode becomes Punycode.
fn server_name(text: &str, scope: &mut Scope<'_>) -> Option<Arc<str>> {
    let ascii = host_to_ascii(text).map(|ascii| ascii.to_ascii_lowercase());
    let name = ascii.filter(|ascii| match ascii.parse() {
        Ok(ip) => !std::net::IpAddr::is_unspecified(&ip),
        Err(_) => is_dns_name(ascii),
    });
    if name.is_none() {
        scope.error_with(
            "ServerName",
            "invalid_server_name",
            format!("`{}` is not the name of a server", shortened(text)),
            "write a DNS name such as `orders.example`, without scheme and port",
        );
    }
    name.map(Arc::from)
}

fn is_dns_name(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    };
    text.len() <= 253
        && text.split('.').all(is_label)
        && matches!(Host::parse(text), Ok(Host::Domain(_)))
}

/// A cluster without TLS that has settings for it is probably meant to have TLS.
fn warn_without_https(cluster: &ClusterConfig, client: &HttpClientConfig, scope: &mut Scope<'_>) {
    let is_https = |address: &String| {
        let scheme = address.get(..6);
        scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"))
    };
    let mut destinations = cluster.destinations.values();
    let has_none =
        !cluster.destinations.is_empty() && !destinations.any(|it| is_https(&it.address));
    let keys = [
        ("ClientCertificate", client.client_certificate.is_some()),
        ("CaFile", client.ca_file.is_some()),
        ("ServerName", client.server_name.is_some()),
    ];
    if let Some((key, _)) = keys.iter().find(|(_, is_set)| *is_set)
        && has_none
    {
        scope.warning(
            key,
            "no_effect",
            "no destination of the cluster is `https`, so that no connection is TLS",
        );
    }
}
