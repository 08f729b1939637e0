//! TLS of clusters.

use prost::{Message as _, Name as _};
use proxy_model::config::HttpClientConfig;
use xds_types::pb::envoy::config::core::v3::transport_socket::ConfigType;
use xds_types::pb::envoy::config::core::v3::{TransportSocket, data_source};
use xds_types::pb::envoy::extensions::transport_sockets::tls::v3::common_tls_context::ValidationContextType;
use xds_types::pb::envoy::extensions::transport_sockets::tls::v3::{
    CertificateValidationContext, UpstreamTlsContext,
};
use xds_types::pb::envoy::r#type::matcher::v3::string_matcher::MatchPattern;

use super::Reading;

const RAW: &str = "type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer";
/// The directory in which systems keep their trusted certificates.
const SYSTEM: &str = "/etc/ssl/certs/";

/// The TLS settings of destinations.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Tls {
    pub(super) is_on: bool,
    /// The name of the server.
    pub(super) server_name: String,
}

/// Reads a transport socket.
pub(super) fn transport_socket(
    socket: &TransportSocket,
    client: &mut HttpClientConfig,
    reading: &mut Reading,
) -> Tls {
    let Some(ConfigType::TypedConfig(config)) = &socket.config_type else {
        reading.reject("typed_config", "the transport socket has no configuration");
        return Tls::default();
    };
    if config.type_url == RAW {
        return Tls::default();
    }
    let context = (config.type_url == UpstreamTlsContext::type_url())
        .then(|| UpstreamTlsContext::decode(config.value.as_slice()).ok())
        .flatten();
    let Some(context) = context else {
        reading.reject(
            "typed_config",
            format!("`{}` cannot be honoured", config.type_url),
        );
        return Tls::default();
    };
    reading.reject_if(context.auto_host_sni, "auto_host_sni");
    let common = context.common_tls_context.unwrap_or_default();
    reading.reject_if(
        !common.tls_certificates.is_empty()
            || !common.tls_certificate_sds_secret_configs.is_empty()
            || common.tls_certificate_provider_instance.is_some(),
        "tls_certificates",
    );
    match &common.validation_context_type {
        // Envoy checks no certificate without a validation context.
        None => client.dangerous_accept_any_server_certificate = Some(true),
        Some(ValidationContextType::ValidationContext(validation)) => {
            reading.below("validation_context", |reading| {
                self::validation(validation, &context.sni, client, reading);
            });
        }
        Some(_) => reading.reject("validation_context_type", "secrets cannot be asked for"),
    }
    Tls {
        is_on: true,
        server_name: context.sni,
    }
}

fn validation(
    validation: &CertificateValidationContext,
    server_name: &str,
    client: &mut HttpClientConfig,
    reading: &mut Reading,
) {
    let trusted = (validation.trusted_ca.as_ref()).and_then(|source| source.specifier.as_ref());
    match trusted {
        Some(data_source::Specifier::Filename(file)) if file.starts_with(SYSTEM) => {}
        Some(_) => reading.reject(
            "trusted_ca",
            "the proxy trusts its system's certificates, and no others",
        ),
        None if validation.system_root_certs.is_some() => {}
        // Envoy trusts any certificate then.
        None => client.dangerous_accept_any_server_certificate = Some(true),
    }
    reading.reject_if(
        !validation.verify_certificate_spki.is_empty(),
        "verify_certificate_spki",
    );
    reading.reject_if(
        !validation.verify_certificate_hash.is_empty(),
        "verify_certificate_hash",
    );
    reading.reject_if(validation.crl.is_some(), "crl");
    reading.reject_if(
        validation.custom_validator_config.is_some(),
        "custom_validator_config",
    );
    let others = (validation.match_typed_subject_alt_names.iter())
        .map(|name| name.matcher.as_ref())
        .chain(validation.match_subject_alt_names.iter().map(Some))
        .filter(|matcher| {
            let pattern = matcher.and_then(|matcher| matcher.match_pattern.as_ref());
            !matches!(pattern, Some(MatchPattern::Exact(name)) if name == server_name || server_name.is_empty())
        });
    if others.count() > 0 {
        reading.reject(
            "match_typed_subject_alt_names",
            "certificates have to be for the server's name (`sni`)",
        );
    }
}
