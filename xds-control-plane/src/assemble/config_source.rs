//! The source of endpoints and routes that a subscriber is given: the same kind of subscription as its own.

use std::time::Duration;

use xds_types::pb::envoy::config::core::v3::api_config_source::ApiType;
use xds_types::pb::envoy::config::core::v3::config_source::ConfigSourceSpecifier;
use xds_types::pb::envoy::config::core::v3::grpc_service::{EnvoyGrpc, TargetSpecifier};
use xds_types::pb::envoy::config::core::v3::{
    AggregatedConfigSource, ApiConfigSource, ApiVersion, ConfigSource, GrpcService,
};

use crate::proto::duration;
use crate::snapshot::Subscription;

/// The time limit of a poll.
const REST_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) fn config_source(
    subscription: Subscription,
    xds_cluster: &str,
    refresh_delay: Duration,
) -> ConfigSource {
    let api = |api_type: ApiType| ApiConfigSource {
        api_type: api_type.into(),
        transport_api_version: ApiVersion::V3.into(),
        ..ApiConfigSource::default()
    };
    let specifier = match subscription {
        Subscription::Aggregated => ConfigSourceSpecifier::Ads(AggregatedConfigSource::default()),
        Subscription::Separate => {
            let target = EnvoyGrpc {
                cluster_name: xds_cluster.to_owned(),
                ..EnvoyGrpc::default()
            };
            let service = GrpcService {
                target_specifier: Some(TargetSpecifier::EnvoyGrpc(target)),
                ..GrpcService::default()
            };
            ConfigSourceSpecifier::ApiConfigSource(ApiConfigSource {
                grpc_services: vec![service],
                ..api(ApiType::Grpc)
            })
        }
        Subscription::Rest => ConfigSourceSpecifier::ApiConfigSource(ApiConfigSource {
            cluster_names: vec![xds_cluster.to_owned()],
            refresh_delay: Some(duration(refresh_delay)),
            request_timeout: Some(duration(REST_TIMEOUT)),
            ..api(ApiType::Rest)
        }),
    };
    ConfigSource {
        resource_api_version: ApiVersion::V3.into(),
        config_source_specifier: Some(specifier),
        ..ConfigSource::default()
    }
}
