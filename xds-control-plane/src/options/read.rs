//! Reads the file.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use discovery_consul::options::{DiscoveryOptions, Section};
use proxy_model::json::{Node, ObjectReader};
use proxy_model::{Problem, Problems};

use super::{Config, LimitsSection, RegistrySection, TlsSection};
use crate::sources::period;
use crate::translate::HealthCheckKind;

/// Keys of a Consul section that mean something to gateways only.
const WITHOUT_MEANING: [&str; 7] = [
    "LabelPrefix",
    "EnabledByDefault",
    "TraefikTags",
    "TraefikEntryPoints",
    "Priorities",
    "AllowStartBeforeDiscovery",
    "Persist",
];

pub(super) fn config(file: &mut ObjectReader<'_, '_>, folder: &Path) -> Config {
    let unset = Config::default();
    let mut config = Config {
        listen: address(file, "listen").unwrap_or(unset.listen),
        tls: file.object("tls", |section| tls(section, folder)).flatten(),
        admin: address(file, "admin").unwrap_or(unset.admin),
        admin_hosts: file.texts("adminHosts").unwrap_or_default(),
        limits: file
            .object("limits", LimitsSection::read)
            .unwrap_or_default(),
        xds_cluster: name(file, "xdsCluster").unwrap_or(unset.xds_cluster),
        route_config: name(file, "routeConfig").unwrap_or(unset.route_config),
        registry_timeout: period(file, "registryTimeout").unwrap_or(unset.registry_timeout),
        health_check: health_check(file).unwrap_or_default(),
        legacy_regex: file.boolean("legacyRegex").unwrap_or_default(),
        persist: path(file, "persist", folder),
        persist_after: period(file, "persistAfter").unwrap_or(unset.persist_after),
        registry: file
            .object("registry", |section| registry(section, folder))
            .flatten(),
        consul: file.object("consul", |section| consul(section, folder)),
        static_file: file
            .object("static", |section| required_path(section, "file", folder))
            .flatten(),
        #[cfg(feature = "providers")]
        providers: super::ProvidersSection::read(file, folder),
        ..unset
    };
    file.object("domains", |domains| {
        if let Some(suffix) = name(domains, "suffix") {
            config.domain_suffix = suffix.trim_start_matches('.').into();
        }
        if let Some(ports) = domains.list("ports", port) {
            config.domain_ports = ports;
        }
    });
    file.object("debounce", |debounce| {
        for (key, slot) in [
            ("endpoints", &mut config.endpoint_quiet),
            ("quiet", &mut config.config_quiet),
            ("max", &mut config.config_max),
        ] {
            if let Some(time) = period(debounce, key) {
                *slot = time;
            }
        }
    });
    if config.registry.is_none()
        && config.consul.is_none()
        && config.static_file.is_none()
        && !has_providers(&config)
        && !file.problems().has_errors()
    {
        let message = "there is no source: name a `registry`, a `consul` or a `static` file, or one that gateways have";
        let pointer = file.pointer().to_owned();
        file.problems()
            .push(Problem::error(pointer, "no_source", message));
    }
    config
}

#[cfg(feature = "providers")]
fn has_providers(config: &Config) -> bool {
    !config.providers.is_empty()
}

#[cfg(not(feature = "providers"))]
fn has_providers(_: &Config) -> bool {
    false
}

fn report(
    reader: &mut ObjectReader<'_, '_>,
    key: &str,
    code: &'static str,
    message: impl Into<String>,
) {
    let problem = Problem::error(reader.pointer_to(key), code, message.into());
    reader.problems().push(problem);
}

fn address(reader: &mut ObjectReader<'_, '_>, key: &'static str) -> Option<SocketAddr> {
    let text = reader.text(key)?;
    let address = text.trim().parse().ok();
    if address.is_none() {
        report(
            reader,
            key,
            "invalid_address",
            "the address must be an IP address with a port, such as `0.0.0.0:1701`",
        );
    }
    address
}

fn name(reader: &mut ObjectReader<'_, '_>, key: &'static str) -> Option<Arc<str>> {
    let text = reader.text(key)?;
    let is_name = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control());
    if !is_name {
        report(
            reader,
            key,
            "invalid_name",
            "the name is empty or has spaces",
        );
    }
    is_name.then(|| text.into())
}

fn path(reader: &mut ObjectReader<'_, '_>, key: &'static str, folder: &Path) -> Option<PathBuf> {
    let text = reader.text(key)?;
    if text.is_empty() {
        report(reader, key, "missing", "the path is empty");
        return None;
    }
    Some(folder.join(text))
}

fn required_path(
    reader: &mut ObjectReader<'_, '_>,
    key: &'static str,
    folder: &Path,
) -> Option<PathBuf> {
    if reader.peek(key).is_none() {
        report(reader, key, "missing", format!("`{key}` is missing"));
    }
    path(reader, key, folder)
}

fn tls(section: &mut ObjectReader<'_, '_>, folder: &Path) -> Option<TlsSection> {
    let certificate_file = required_path(section, "certificateFile", folder);
    let key_file = required_path(section, "keyFile", folder);
    let client_ca_file = path(section, "clientCaFile", folder);
    Some(TlsSection {
        certificate_file: certificate_file?,
        key_file: key_file?,
        client_ca_file,
    })
}

pub(super) fn port(node: &Node, pointer: &str, problems: &mut Problems) -> Option<u16> {
    let port = match node {
        Node::Number(number) => number.as_u64().and_then(|number| number.try_into().ok()),
        Node::Text(text) => text.trim().parse().ok(),
        _ => None,
    };
    let port = port.filter(|port| *port != 0);
    if port.is_none() {
        problems.push(Problem::error(
            pointer,
            "out_of_range",
            "a port is a number from 1 to 65535",
        ));
    }
    port
}

/// `tcp`, `none`, or `{http: /path}`.
fn health_check(file: &mut ObjectReader<'_, '_>) -> Option<HealthCheckKind> {
    if let Some(Node::Object(_)) = file.peek("healthCheck") {
        return file.object("healthCheck", |check| {
            let path = check.text("http").filter(|path| path.starts_with('/'));
            if path.is_none() {
                report(
                    check,
                    "http",
                    "invalid_path",
                    "a health check over HTTP has a path that begins with `/`",
                );
            }
            path.map(|path| HealthCheckKind::Http(path.into()))
        })?;
    }
    let kinds = [
        ("tcp", HealthCheckKind::Tcp),
        ("none", HealthCheckKind::None),
    ];
    file.choice("healthCheck", &kinds)
}

fn registry(section: &mut ObjectReader<'_, '_>, folder: &Path) -> Option<RegistrySection> {
    let file = path(section, "file", folder);
    let url = section.text("url");
    let wait = period(section, "wait");
    let poll = period(section, "poll");
    let token_file = path(section, "tokenFile", folder);
    match (file, url) {
        (Some(file), None) => {
            for (key, is_set) in [
                ("wait", wait.is_some()),
                ("poll", poll.is_some()),
                ("tokenFile", token_file.is_some()),
            ] {
                if is_set {
                    report(
                        section,
                        key,
                        "without_meaning",
                        "is for a registry with a `url`",
                    );
                }
            }
            Some(RegistrySection::File(file))
        }
        (None, Some(url)) => {
            if wait.is_some() && poll.is_some() {
                report(
                    section,
                    "poll",
                    "conflict",
                    "the registry is either polled or queried with a `wait`",
                );
            }
            match url::Url::parse(&url) {
                Ok(url) if matches!(url.scheme(), "http" | "https") => {
                    Some(RegistrySection::Http {
                        url,
                        wait,
                        poll: poll.unwrap_or(Duration::from_secs(5)),
                        token_file,
                    })
                }
                _ => {
                    report(
                        section,
                        "url",
                        "invalid_url",
                        "the address must be a URL that begins with http:// or https://",
                    );
                    None
                }
            }
        }
        _ => {
            let pointer = section.pointer().to_owned();
            let message = "a registry is in a `file` or behind a `url`";
            section
                .problems()
                .push(Problem::error(pointer, "one_of", message));
            None
        }
    }
}

/// Reads the section `ConsulDiscovery` of a gateway, without the keys that apply only to gateways.
fn consul(section: &mut ObjectReader<'_, '_>, folder: &Path) -> DiscoveryOptions {
    let mut options = Section::read(section).options;
    for key in WITHOUT_MEANING {
        if section.peek(key).is_some() {
            report(
                section,
                key,
                "without_meaning",
                "means something to gateways only; remove it",
            );
        }
    }
    let files = [
        &mut options.consul.token_file,
        &mut options.consul.tls.ca_file,
        &mut options.consul.tls.client_certificate_file,
        &mut options.consul.tls.client_key_file,
    ];
    for file in files.into_iter().flatten() {
        *file = folder.join(&*file);
    }
    options
}
