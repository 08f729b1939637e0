//! The version of HTTP for destinations.

use xds_types::pb::envoy::config::cluster::v3::Cluster as EnvoyCluster;
use xds_types::pb::envoy::config::core::v3::{Http1ProtocolOptions, Http2ProtocolOptions};
use xds_types::pb::envoy::extensions::upstreams::http::v3::HttpProtocolOptions;
use xds_types::pb::envoy::extensions::upstreams::http::v3::http_protocol_options::explicit_http_config::ProtocolConfig;
use xds_types::pb::envoy::extensions::upstreams::http::v3::http_protocol_options::{
    AutoHttpConfig, ExplicitHttpConfig, UpstreamProtocolOptions,
};
use xds_types::pb::google::protobuf::Any;
use prost::Message as _;
use proxy_model::compiled::{Cluster, Destination, Scheme};
use proxy_model::config::{HttpVersion, VersionPolicy};

use super::report::{Inexpressible, Report};

/// The key under which Envoy finds these options in a cluster.
pub(super) const KEY: &str = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
pub(super) const TYPE_URL: &str =
    "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

/// The allowed protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocols {
    Http1,
    Http2,
    /// The protocol that TLS negotiates.
    Either,
}

/// Returns the protocol for the destinations of a cluster, as the proxy chooses it.
pub(super) fn of(cluster: &Cluster) -> Option<Protocols> {
    use HttpVersion::{Http2, Http3, Http10, Http11};
    use VersionPolicy::{RequestVersionExact, RequestVersionOrHigher, RequestVersionOrLower};

    let upstream = cluster.upstream();
    // Unencrypted connections negotiate nothing, and Envoy negotiates only if TLS is used everywhere.
    let is_https =
        !cluster.destinations().is_empty() && of_https(cluster) == cluster.destinations().len();
    match (upstream.version(), upstream.version_policy()) {
        (Http10 | Http11, RequestVersionOrLower | RequestVersionExact) => Some(Protocols::Http1),
        (Http10 | Http11, RequestVersionOrHigher) | (Http2 | Http3, RequestVersionOrLower) => {
            Some(if is_https {
                Protocols::Either
            } else {
                Protocols::Http1
            })
        }
        (Http2, RequestVersionOrHigher | RequestVersionExact) => Some(Protocols::Http2),
        (Http3, RequestVersionOrHigher | RequestVersionExact) => None,
    }
}

/// Number of destinations with TLS.
fn of_https(cluster: &Cluster) -> usize {
    let is_https = |destination: &&Destination| destination.address().scheme() == Scheme::Https;
    cluster.destinations().iter().filter(is_https).count()
}

pub(super) fn write(
    cluster: &Cluster,
    written: &mut EnvoyCluster,
    report: &mut Report<'_>,
) -> Result<(), Inexpressible> {
    let protocols = of(cluster).ok_or_else(|| {
        Inexpressible::new(
            "HttpRequest/Version",
            "HTTP/3 without another version is not expressed",
        )
    })?;
    let https = of_https(cluster);
    if protocols == Protocols::Http1
        && (1..cluster.destinations().len()).contains(&https)
        && cluster.upstream().version() != HttpVersion::Http11
    {
        report.differs(
            "HttpRequest/Version",
            "Envoy negotiates the version only where all destinations speak TLS; HTTP/1.1 is spoken",
        );
    }
    let explicit = |protocol| {
        UpstreamProtocolOptions::ExplicitHttpConfig(ExplicitHttpConfig {
            protocol_config: Some(protocol),
        })
    };
    let spoken = match protocols {
        Protocols::Http1 => explicit(ProtocolConfig::HttpProtocolOptions(
            Http1ProtocolOptions::default(),
        )),
        Protocols::Http2 => explicit(ProtocolConfig::Http2ProtocolOptions(
            Http2ProtocolOptions::default(),
        )),
        Protocols::Either => UpstreamProtocolOptions::AutoConfig(AutoHttpConfig {
            http_protocol_options: Some(Http1ProtocolOptions::default()),
            http2_protocol_options: Some(Http2ProtocolOptions::default()),
            ..AutoHttpConfig::default()
        }),
    };
    let options = HttpProtocolOptions {
        upstream_protocol_options: Some(spoken),
        ..HttpProtocolOptions::default()
    };
    written.typed_extension_protocol_options.insert(
        KEY.to_owned(),
        Any {
            type_url: TYPE_URL.to_owned(),
            value: options.encode_to_vec(),
        },
    );
    Ok(())
}
