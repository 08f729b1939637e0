use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proxy_model::Problem;
use proxy_model::json::ObjectReader;

use super::{ClientError, Mode, TlsOptions, XdsDiscoverer, XdsOptions};

/// The allowed range of periods. Shorter ones would be a busy loop, longer ones have no use.
const PERIODS: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(3600);

/// The section `XdsDiscovery`.
///
/// | key | sets |
/// |---|---|
/// | `Servers`, `RouteConfigs`, `Listeners`, `MaxMessageSize` | the same of [`XdsOptions`] |
/// | `ConnectTimeout`, `AnswerTimeout`, `FetchTimeout`, `Settle` | the same of [`XdsOptions`] |
/// | `Mode` | `Delta` or `StateOfTheWorld` |
/// | `Node.{Id, Cluster, Metadata}` | the identity of this proxy |
/// | `Tls.{CaFile, ClientCertificateFile, ClientKeyFile, ServerName}` | [`TlsOptions`] |
/// | `AllowStartBeforeDiscovery`, `Persist` | the same of [`XdsOptions`] |
///
/// Options without a key keep their default.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Section {
    /// The options of discovery.
    pub options: XdsOptions,
}

impl Section {
    /// Reads the section. Invalid values are added to the reader's problems and stay at their default.
    pub fn read(section: &mut ObjectReader<'_, '_>) -> Self {
        let mut options = XdsOptions::default();
        if let Some(servers) = section.texts("Servers") {
            options.servers = servers;
        }
        let modes = [
            ("Delta", Mode::Delta),
            ("StateOfTheWorld", Mode::StateOfTheWorld),
        ];
        if let Some(mode) = section.choice("Mode", &modes) {
            options.mode = mode;
        }
        let node = section.object("Node", |node| {
            (
                node.text("Id"),
                node.text("Cluster"),
                node.text_map("Metadata"),
            )
        });
        if let Some((id, cluster, metadata)) = node {
            options.node_id = id.unwrap_or(options.node_id);
            options.node_cluster = cluster.unwrap_or(options.node_cluster);
            options.node_metadata = metadata.into_iter().flatten().collect::<BTreeMap<_, _>>();
        }
        if let Some(tls) = section.object("Tls", read_tls) {
            options.tls = tls;
        }
        if let Some(names) = section.texts("RouteConfigs") {
            options.route_configs = names;
        }
        if let Some(listeners) = section.boolean("Listeners") {
            options.listeners = listeners;
        }
        for (key, time) in [
            ("ConnectTimeout", &mut options.connect_timeout),
            ("AnswerTimeout", &mut options.answer_timeout),
            ("FetchTimeout", &mut options.fetch_timeout),
        ] {
            read_time(section, key, time);
        }
        read_time(section, "Settle", &mut options.settle);
        if let Some(bytes) = section.integer("MaxMessageSize", 65_536..=1_073_741_824_u32) {
            options.max_message = usize::try_from(bytes).unwrap_or(options.max_message);
        }
        if let Some(allow) = section.boolean("AllowStartBeforeDiscovery") {
            options.allow_start_before_discovery = allow;
        }
        options.persist = section.text("Persist").map(PathBuf::from);
        let is_secure = |server: &String| server.to_ascii_lowercase().starts_with("https:");
        if options.tls != TlsOptions::default() && !options.servers.iter().any(is_secure) {
            let message =
                "`Tls` has no effect, since none of the `Servers` is `https`: nothing is encrypted";
            let problem = Problem::warning(section.pointer_to("Tls"), "no_effect", message);
            section.problems().push(problem);
        }
        let read = Self { options };
        // A certificate may come later than the configuration; an address does not.
        if let Err(error @ (ClientError::NoServer | ClientError::Server { .. })) = read.connect() {
            let problem = Problem::error(
                section.pointer_to("Servers"),
                "invalid_server",
                error.to_string(),
            );
            section.problems().push(problem);
        }
        read
    }

    /// Creates a discoverer. Files with certificates are read, but no connection is made yet.
    ///
    /// # Errors
    ///
    /// Returns an error if an address or a certificate cannot be used.
    pub fn connect(&self) -> Result<XdsDiscoverer, ClientError> {
        XdsDiscoverer::new(self.options.clone())
    }

    /// Sets the name of the source. Default: `xds`.
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.options.name = name.into();
        self
    }
}

fn read_tls(tls: &mut ObjectReader<'_, '_>) -> TlsOptions {
    TlsOptions {
        ca_file: tls.text("CaFile").map(PathBuf::from),
        certificate_file: tls.text("ClientCertificateFile").map(PathBuf::from),
        key_file: tls.text("ClientKeyFile").map(PathBuf::from),
        server_name: tls.text("ServerName"),
    }
}

fn read_time(section: &mut ObjectReader<'_, '_>, key: &'static str, time: &mut Duration) {
    let Some(written) = section.time_span(key).map(Duration::from) else {
        return;
    };
    if PERIODS.contains(&written) {
        *time = written;
        return;
    }
    let message = format!(
        "`{key}` is not between {:?} and {:?}",
        PERIODS.start(),
        PERIODS.end()
    );
    let problem = Problem::error(section.pointer_to(key), "out_of_range", message);
    section.problems().push(problem);
}
