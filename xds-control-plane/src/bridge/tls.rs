//! TLS with destinations.

use std::collections::{BTreeMap, HashMap};

use prost::Message as _;
use proxy_model::compiled::{Cluster, Destination, Scheme};
use xds_types::pb::envoy::config::cluster::v3::Cluster as EnvoyCluster;
use xds_types::pb::envoy::config::cluster::v3::cluster::TransportSocketMatch;
use xds_types::pb::envoy::config::core::v3::transport_socket::ConfigType;
use xds_types::pb::envoy::config::core::v3::{DataSource, TransportSocket, data_source};
use xds_types::pb::envoy::extensions::transport_sockets::tls::v3::common_tls_context::ValidationContextType;
use xds_types::pb::envoy::extensions::transport_sockets::tls::v3::subject_alt_name_matcher::SanType;
use xds_types::pb::envoy::extensions::transport_sockets::tls::v3::tls_parameters::TlsProtocol;
use xds_types::pb::envoy::extensions::transport_sockets::tls::v3::{
    CertificateValidationContext, CommonTlsContext, SubjectAltNameMatcher, TlsParameters,
    UpstreamTlsContext,
};
use xds_types::pb::envoy::r#type::matcher::v3::StringMatcher;
use xds_types::pb::envoy::r#type::matcher::v3::string_matcher::MatchPattern;
use xds_types::pb::google::protobuf::value::Kind;
use xds_types::pb::google::protobuf::{Any, Struct, Value};

use super::BridgeOptions;
use super::protocol::{self, Protocols};
use super::report::Inexpressible;

pub(super) const NAME: &str = "envoy.transport_sockets.tls";
pub(super) const TYPE_URL: &str =
    "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext";
const RAW_NAME: &str = "envoy.transport_sockets.raw_buffer";
const RAW_TYPE_URL: &str =
    "type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer";
/// The metadata key by which Envoy chooses the socket of an endpoint.
const MATCH: &str = "envoy.transport_socket_match";
/// The key that chooses.
const SERVER_NAME: &str = "server_name";

/// The server name for TLS, or `None` for an unencrypted destination.
fn server_name(destination: &Destination) -> Option<&str> {
    let address = destination.address();
    (address.scheme() == Scheme::Https).then(|| address.server_name())
}

/// Returns the TLS variants of the destinations.
fn ways(cluster: &Cluster) -> BTreeMap<Option<&str>, ()> {
    (cluster.destinations().iter())
        .map(|destination| (server_name(destination), ()))
        .collect()
}

pub(super) fn write(
    cluster: &Cluster,
    options: &BridgeOptions,
    written: &mut EnvoyCluster,
) -> Result<(), Inexpressible> {
    let ways = ways(cluster);
    let mut names = ways.keys();
    match (names.next(), names.next()) {
        (None | Some(None), None) => {}
        (Some(Some(name)), None) => {
            written.transport_socket = Some(socket(cluster, name, options)?);
        }
        _ => {
            for name in ways.keys() {
                written.transport_socket_matches.push(TransportSocketMatch {
                    name: name.unwrap_or("cleartext").to_owned(),
                    r#match: Some(key(name.unwrap_or_default())),
                    transport_socket: Some(match name {
                        Some(name) => socket(cluster, name, options)?,
                        None => typed(RAW_NAME, RAW_TYPE_URL, Vec::new()),
                    }),
                });
            }
        }
    }
    Ok(())
}

/// Returns the metadata that selects the endpoint's socket, if there are several.
pub(super) fn endpoint_match(
    cluster: &Cluster,
    destination: &Destination,
) -> Option<HashMap<String, Struct>> {
    (ways(cluster).len() > 1).then(|| {
        let name = server_name(destination).unwrap_or_default();
        HashMap::from([(MATCH.to_owned(), key(name))])
    })
}

fn key(server_name: &str) -> Struct {
    let value = Value {
        kind: Some(Kind::StringValue(server_name.to_owned())),
    };
    Struct {
        fields: HashMap::from([(SERVER_NAME.to_owned(), value)]),
    }
}

fn socket(
    cluster: &Cluster,
    server_name: &str,
    options: &BridgeOptions,
) -> Result<TransportSocket, Inexpressible> {
    let upstream = cluster.upstream();
    let is_ip = server_name.parse::<std::net::IpAddr>().is_ok();
    let validation = CertificateValidationContext {
        trusted_ca: Some(DataSource {
            specifier: Some(data_source::Specifier::Filename(
                options.trusted_ca.to_string(),
            )),
            ..DataSource::default()
        }),
        match_typed_subject_alt_names: vec![SubjectAltNameMatcher {
            san_type: match is_ip {
                true => SanType::IpAddress,
                false => SanType::Dns,
            }
            .into(),
            matcher: Some(StringMatcher {
                match_pattern: Some(MatchPattern::Exact(server_name.to_owned())),
                ..StringMatcher::default()
            }),
            ..SubjectAltNameMatcher::default()
        }],
        ..CertificateValidationContext::default()
    };
    let protocol = |tls12| match tls12 {
        true => TlsProtocol::TlSv12,
        false => TlsProtocol::TlSv13,
    };
    let alpn: &[&str] = match protocol::of(cluster) {
        Some(Protocols::Http1) => &["http/1.1"],
        Some(Protocols::Http2) => &["h2"],
        // Envoy writes the list itself.
        Some(Protocols::Either) | None => &[],
    };
    let context = UpstreamTlsContext {
        // Addresses are no server names (RFC 6066 section 3).
        sni: if is_ip {
            String::new()
        } else {
            server_name.to_owned()
        },
        common_tls_context: Some(CommonTlsContext {
            tls_params: Some(TlsParameters {
                tls_minimum_protocol_version: protocol(upstream.tls12()).into(),
                tls_maximum_protocol_version: protocol(!upstream.tls13()).into(),
                ..TlsParameters::default()
            }),
            alpn_protocols: alpn.iter().map(|name| (*name).to_owned()).collect(),
            // Without one, Envoy trusts any certificate.
            validation_context_type: (!upstream.accepts_any_certificate())
                .then_some(ValidationContextType::ValidationContext(validation)),
            ..CommonTlsContext::default()
        }),
        ..UpstreamTlsContext::default()
    };
    Ok(typed(NAME, TYPE_URL, context.encode_to_vec()))
}

fn typed(name: &str, type_url: &str, value: Vec<u8>) -> TransportSocket {
    TransportSocket {
        name: name.to_owned(),
        config_type: Some(ConfigType::TypedConfig(Any {
            type_url: type_url.to_owned(),
            value,
        })),
    }
}
