//! The section `ServiceFabricDiscovery` of a configuration.

mod read_header;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use discovery_core::runner::ConfirmRemoval;
use proxy_model::config::{PartitionHash, PartitionKey};
use proxy_model::json::ObjectReader;
use proxy_model::{Problem, Severity};

use self::read_header::read_header;
use super::{
    ConnectError, ConnectionOptions, EndpointSource, ServerCheck, ServiceFabricOptions, is_source,
};
use crate::client::Thumbprint;
use crate::discoverer::ServiceFabric;
use crate::labels::{LabelOptions, ListenerMode, PartitionMode, ReplicaSelection, RoleRouting};

/// The allowed range of periods. Shorter ones would be a busy loop, longer ones have no use.
const PERIODS: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(86_400);

/// The section `ServiceFabricDiscovery`: the options of discovery, and the connection to the cluster.
///
/// | key | sets |
/// |---|---|
/// | `Gateways` | [`ConnectionOptions::gateways`] |
/// | `CallTimeout` | [`ConnectionOptions::call_timeout`] |
/// | `Security.ClientCertificateFile`, `.ClientKeyFile` | the certificate that the client shows, and its key |
/// | `Security.TokenFile` | a bearer token |
/// | `Security.ServerCaFile` | authorities that may issue the server's certificate |
/// | `Security.ServerThumbprints` | certificates that the server may have |
/// | `Security.ServerNames` | names of which the server's certificate must have one |
/// | `Security.ServerIssuerThumbprints` | allowed issuers of that certificate |
/// | `Security.DangerousAcceptAnyServerCertificate` | `true` accepts any server, for trials only |
/// | `DiscoveryPeriod`, `FastPeriod`, `FullRefreshPeriod` | times of [`ServiceFabricOptions`] |
/// | `CacheDuration`, `UnreadGrace` | times of [`ServiceFabricOptions`] |
/// | `ReportServicesHealth`, `ReportReplicasHealth` | switches of [`ServiceFabricOptions`] |
/// | `AlwaysSendImmediateHealthReports`, `HealthReportSource` | health reports of [`ServiceFabricOptions`] |
/// | `AllowStartBeforeDiscovery`, `Persist`, `ChangeProbe` | the same of [`ServiceFabricOptions`] |
/// | `EndpointSource`, `MaxConcurrentCalls` | the same of [`ServiceFabricOptions`] |
/// | `ConfirmRemoval.{Share, Settle}` | the same of [`ServiceFabricOptions`] |
/// | `DiscoverInsecureHttpDestinations`, `StatefulReplicaSelectionMode` | [`LabelOptions`] |
/// | `PartitionMode`, `PartitionKey.{Header, QueryParameter, RouteValue, Hash}` | [`LabelOptions`] |
/// | `ListenerMode`, `RoleRouting`, `ReadHeader.{Name, Values, Mode, IsCaseSensitive}` | [`LabelOptions`] |
/// | `DefaultRoute`, `PathPrefix`, `UnknownLabels` | [`LabelOptions`] |
///
/// The label options apply to services whose labels do not override them.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Section {
    /// The options of discovery.
    pub options: ServiceFabricOptions,
    /// The connection to the cluster.
    pub connection: ConnectionOptions,
}

impl Section {
    /// Reads the section. Invalid values are added to the reader's problems and stay at their default.
    pub fn read(section: &mut ObjectReader<'_, '_>) -> Self {
        let connection = read_connection(section);
        let options = read_options(section);
        if options.fast_period > options.discovery_period {
            let pointer = section.pointer_to("FastPeriod");
            let message = "`FastPeriod` is longer than `DiscoveryPeriod`, so it changes nothing";
            if section.peek("FastPeriod").is_some() {
                let problem = Problem::warning(pointer, "ineffective_period", message);
                section.problems().push(problem);
            }
        }
        Self {
            options,
            connection,
        }
    }

    /// Creates a discoverer for the cluster. Files are read now, but no call is made yet.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read or used, or if a URL is invalid.
    pub fn connect(&self) -> Result<ServiceFabric, ConnectError> {
        Ok(ServiceFabric::new(self.connection.connect()?).options(self.options.clone()))
    }
}

fn read_options(section: &mut ObjectReader<'_, '_>) -> ServiceFabricOptions {
    let unset = ServiceFabricOptions::default();
    ServiceFabricOptions {
        discovery_period: period(section, "DiscoveryPeriod").unwrap_or(unset.discovery_period),
        fast_period: period(section, "FastPeriod").unwrap_or(unset.fast_period),
        full_refresh_period: period(section, "FullRefreshPeriod")
            .unwrap_or(unset.full_refresh_period),
        cache_duration: section
            .time_span("CacheDuration")
            .map_or(unset.cache_duration, Duration::from),
        unread_grace: section
            .time_span("UnreadGrace")
            .map_or(unset.unread_grace, Duration::from),
        allow_start_before_discovery: section
            .boolean("AllowStartBeforeDiscovery")
            .unwrap_or(unset.allow_start_before_discovery),
        report_services_health: section
            .boolean("ReportServicesHealth")
            .unwrap_or(unset.report_services_health),
        report_replicas_health: section
            .boolean("ReportReplicasHealth")
            .unwrap_or(unset.report_replicas_health),
        always_send_immediate_health_reports: section
            .boolean("AlwaysSendImmediateHealthReports")
            .unwrap_or(unset.always_send_immediate_health_reports),
        change_probe: section.boolean("ChangeProbe").unwrap_or(unset.change_probe),
        endpoint_source: section
            .choice(
                "EndpointSource",
                &[
                    ("Replicas", EndpointSource::Replicas),
                    ("ReplicasAndResolve", EndpointSource::ReplicasAndResolve),
                ],
            )
            .unwrap_or(unset.endpoint_source),
        max_concurrent_calls: section
            .integer("MaxConcurrentCalls", 1..=1_000_u32)
            .and_then(|calls| calls.try_into().ok())
            .unwrap_or(unset.max_concurrent_calls),
        health_report_source: read_source(section).unwrap_or(unset.health_report_source),
        persist: section.text("Persist").map(PathBuf::from),
        confirm_removal: section.object("ConfirmRemoval", read_confirm_removal),
        labels: read_labels(section),
    }
}

fn read_source(section: &mut ObjectReader<'_, '_>) -> Option<String> {
    const KEY: &str = "HealthReportSource";
    let source = section.text(KEY)?;
    if is_source(&source) {
        return Some(source);
    }
    let message = "a source of health reports has a name that does not begin with `System.`";
    let problem = Problem::error(section.pointer_to(KEY), "invalid_source", message);
    section.problems().push(problem);
    None
}

fn read_confirm_removal(rule: &mut ObjectReader<'_, '_>) -> ConfirmRemoval {
    let mut confirm = ConfirmRemoval::default();
    if let Some(share) = rule.number("Share") {
        if share > 0.0 && share <= 1.0 {
            confirm.share = share;
        } else {
            let message = "`Share` is above 0 and up to 1, which is all services";
            let problem = Problem::error(rule.pointer_to("Share"), "out_of_range", message);
            rule.problems().push(problem);
        }
    }
    if let Some(settle) = rule.time_span("Settle") {
        confirm.settle = Duration::from(settle).min(*PERIODS.end());
    }
    confirm
}

fn read_labels(section: &mut ObjectReader<'_, '_>) -> LabelOptions {
    let mut labels = LabelOptions::default();
    if let Some(insecure) = section.boolean("DiscoverInsecureHttpDestinations") {
        labels.insecure_http = insecure;
    }
    let selections = [
        ("All", ReplicaSelection::All),
        ("PrimaryOnly", ReplicaSelection::PrimaryOnly),
        ("SecondaryOnly", ReplicaSelection::SecondaryOnly),
    ];
    if let Some(selection) = section.choice("StatefulReplicaSelectionMode", &selections) {
        labels.replica_selection = selection;
    }
    let partitions = [
        ("Merge", PartitionMode::Merge),
        ("PerPartition", PartitionMode::PerPartition),
        ("Key", PartitionMode::Key),
    ];
    if let Some(mode) = section.choice("PartitionMode", &partitions) {
        labels.partition_mode = mode;
    }
    if let Some((key, hash)) = section.object("PartitionKey", read_partition_key) {
        labels.partition_key = key;
        labels.partition_hash = hash;
    }
    let listeners = [
        ("One", ListenerMode::One),
        ("PerListener", ListenerMode::PerListener),
    ];
    if let Some(mode) = section.choice("ListenerMode", &listeners) {
        labels.listener_mode = mode;
    }
    let roles = [
        ("Off", RoleRouting::Off),
        ("Methods", RoleRouting::Methods),
        ("Header", RoleRouting::Header),
    ];
    if let Some(routing) = section.choice("RoleRouting", &roles) {
        labels.role_routing = routing;
    }
    labels.read_header = section.object("ReadHeader", read_header).flatten();
    if let Some(enabled) = section.boolean("DefaultRoute") {
        labels.default_route = enabled;
    }
    if let Some(enabled) = section.boolean("PathPrefix") {
        labels.path_prefix = enabled;
    }
    let severities = [("Warning", Severity::Warning), ("Error", Severity::Error)];
    if let Some(severity) = section.choice("UnknownLabels", &severities) {
        labels.unknown_labels = severity;
    }
    labels
}

fn read_partition_key(key: &mut ObjectReader<'_, '_>) -> (PartitionKey, PartitionHash) {
    let pointer = key.pointer().to_owned();
    let sources = PartitionKey {
        header: key.text("Header"),
        query_parameter: key.text("QueryParameter"),
        route_value: key.text("RouteValue"),
    };
    let hashes = [
        ("None", PartitionHash::None),
        ("Fnv1a64", PartitionHash::Fnv1a64),
    ];
    let hash = key.choice("Hash", &hashes).unwrap_or_default();
    let said = [
        &sources.header,
        &sources.query_parameter,
        &sources.route_value,
    ];
    if said.iter().filter(|source| source.is_some()).count() != 1 {
        let message = "a key comes from exactly one of `Header`, `QueryParameter` and `RouteValue`";
        let problem = Problem::error(pointer, "conflicting_key_sources", message);
        key.problems().push(problem);
    }
    (sources, hash)
}

fn read_connection(section: &mut ObjectReader<'_, '_>) -> ConnectionOptions {
    let unset = ConnectionOptions::default();
    let gateways = section.texts("Gateways");
    if gateways.as_ref().is_some_and(Vec::is_empty) {
        let pointer = section.pointer_to("Gateways");
        let problem = Problem::error(pointer, "no_gateways", "there is no gateway to call");
        section
            .problems()
            .push(problem.with_suggestion("remove `Gateways` to use the one on this machine"));
    }
    let gateways = gateways.unwrap_or(unset.gateways);
    let mut connection = ConnectionOptions {
        gateways,
        call_timeout: period(section, "CallTimeout").unwrap_or(unset.call_timeout),
        ..section
            .object("Security", read_security)
            .unwrap_or_default()
    };
    for (index, gateway) in connection.gateways.iter_mut().enumerate() {
        let url = gateway.trim();
        if !url.starts_with("http://") && !url.starts_with("https://") {
            let pointer = format!("{}/{index}", section.pointer_to("Gateways"));
            let message = format!("`{url}` is not the URL of a gateway");
            let problem = Problem::error(pointer, "invalid_url", message);
            section
                .problems()
                .push(problem.with_suggestion("write `http://host:19080` or `https://host:19080`"));
        }
        *gateway = url.to_owned();
    }
    connection
}

fn read_security(security: &mut ObjectReader<'_, '_>) -> ConnectionOptions {
    let path = |text: Option<String>| text.map(PathBuf::from);
    let connection = ConnectionOptions {
        client_certificate_file: path(security.text("ClientCertificateFile")),
        client_key_file: path(security.text("ClientKeyFile")),
        token_file: path(security.text("TokenFile")),
        server: read_server_check(security),
        ..ConnectionOptions::default()
    };
    if connection.client_key_file.is_some() && connection.client_certificate_file.is_none() {
        let pointer = security.pointer_to("ClientKeyFile");
        let message = "a key without a certificate secures nothing";
        let problem = Problem::error(pointer, "missing_certificate", message);
        security
            .problems()
            .push(problem.with_suggestion("name the certificate in `ClientCertificateFile`"));
    }
    connection
}

fn read_server_check(security: &mut ObjectReader<'_, '_>) -> ServerCheck {
    let anybody = security.boolean("DangerousAcceptAnyServerCertificate") == Some(true);
    let authorities = security.text("ServerCaFile").map(PathBuf::from);
    let names = security.texts("ServerNames").unwrap_or_default();
    let issuers = thumbprints(security, "ServerIssuerThumbprints");
    let thumbprints = thumbprints(security, "ServerThumbprints");
    let mut conflict = |key: &'static str, with: &str| {
        let pointer = security.pointer_to(key);
        let message = format!("`{key}` means nothing beside `{with}`");
        let problem = Problem::error(pointer, "conflicting_server_checks", message);
        security.problems().push(problem);
    };
    let others = [
        ("ServerCaFile", authorities.is_some()),
        ("ServerNames", !names.is_empty()),
        ("ServerIssuerThumbprints", !issuers.is_empty()),
    ];
    if anybody {
        for (key, is_set) in others {
            if is_set {
                conflict(key, "DangerousAcceptAnyServerCertificate");
            }
        }
        if !thumbprints.is_empty() {
            conflict("ServerThumbprints", "DangerousAcceptAnyServerCertificate");
        }
        return ServerCheck::AnyServer;
    }
    if !thumbprints.is_empty() {
        for (key, is_set) in others {
            if is_set {
                conflict(key, "ServerThumbprints");
            }
        }
        return ServerCheck::Thumbprints(thumbprints);
    }
    if !names.is_empty() {
        return ServerCheck::Names {
            names,
            authorities,
            issuers,
        };
    }
    if !issuers.is_empty() {
        let pointer = security.pointer_to("ServerIssuerThumbprints");
        let message =
            "`ServerIssuerThumbprints` names the issuers of certificates for `ServerNames`";
        let problem = Problem::error(pointer, "missing_server_names", message);
        security
            .problems()
            .push(problem.with_suggestion("name them in `ServerNames`"));
    }
    authorities.map_or(ServerCheck::System, ServerCheck::Authorities)
}

fn thumbprints(security: &mut ObjectReader<'_, '_>, key: &'static str) -> Vec<String> {
    let texts = security.texts(key).unwrap_or_default();
    for (index, text) in texts.iter().enumerate() {
        if let Err(error) = text.parse::<Thumbprint>() {
            let pointer = format!("{}/{index}", security.pointer_to(key));
            let problem = Problem::error(pointer, "invalid_thumbprint", error.to_string());
            security.problems().push(problem);
        }
    }
    texts
}

fn period(section: &mut ObjectReader<'_, '_>, key: &'static str) -> Option<Duration> {
    let period = Duration::from(section.time_span(key)?);
    if PERIODS.contains(&period) {
        return Some(period);
    }
    let message = format!(
        "`{key}` is not between {:?} and {} days",
        PERIODS.start(),
        PERIODS.end().as_secs() / 86_400
    );
    let problem = Problem::error(section.pointer_to(key), "out_of_range", message);
    section.problems().push(problem);
    None
}

#[cfg(test)]
mod tests;
