//! The fields of messages that restrict senders, and whether they are set. A field that a newer version of
//! Envoy's API adds does not compile before it has a row in the table.

use std::collections::HashMap;

use xds_types::pb::envoy::config::listener::v3::{FilterChain, FilterChainMatch, Listener};
use xds_types::pb::envoy::config::route::v3::{
    Route, RouteAction, RouteConfiguration, VirtualHost,
};
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;

/// Fields with their names, and true for those that are set.
type Fields = Vec<(&'static str, bool)>;

/// A value that counts as unset if it is the default.
trait Presence {
    fn is_set(&self) -> bool;
}

impl<T> Presence for Option<T> {
    fn is_set(&self) -> bool {
        self.is_some()
    }
}

impl<T> Presence for Vec<T> {
    fn is_set(&self) -> bool {
        !self.is_empty()
    }
}

impl<K, V> Presence for HashMap<K, V> {
    fn is_set(&self) -> bool {
        !self.is_empty()
    }
}

impl Presence for String {
    fn is_set(&self) -> bool {
        !self.is_empty()
    }
}

impl Presence for bool {
    fn is_set(&self) -> bool {
        *self
    }
}

impl Presence for i32 {
    fn is_set(&self) -> bool {
        *self != 0
    }
}

impl Presence for u32 {
    fn is_set(&self) -> bool {
        *self != 0
    }
}

macro_rules! fields {
    ($(#[$doc:meta])* $function:ident: $message:ident { $($field:ident,)* }) => {
        $(#[$doc])*
        pub(in crate::read) fn $function(message: &$message) -> Fields {
            let $message { $($field,)* } = message;
            vec![$((stringify!($field).trim_start_matches("r#"), $field.is_set()),)*]
        }
    };
}

fields! {
    listener: Listener {
        name,
        address,
        additional_addresses,
        stat_prefix,
        stats_matcher,
        filter_chains,
        fcds_config,
        filter_chain_matcher,
        use_original_dst,
        default_filter_chain,
        per_connection_buffer_limit_bytes,
        per_connection_buffer_high_watermark_timeout,
        metadata,
        deprecated_v1,
        drain_type,
        listener_filters,
        listener_filters_timeout,
        continue_on_listener_filters_timeout,
        transparent,
        freebind,
        socket_options,
        tcp_fast_open_queue_length,
        traffic_direction,
        udp_listener_config,
        api_listener,
        connection_balance_config,
        reuse_port,
        enable_reuse_port,
        access_log,
        tcp_backlog_size,
        max_connections_to_accept_per_socket_event,
        bind_to_port,
        enable_mptcp,
        ignore_global_conn_limit,
        bypass_overload_manager,
        tcp_keepalive,
        listener_specifier,
    }
}

fields! {
    filter_chain: FilterChain {
        filter_chain_match,
        filters,
        use_proxy_proto,
        metadata,
        transport_socket,
        transport_socket_connect_timeout,
        name,
    }
}

fields! {
    filter_chain_match: FilterChainMatch {
        destination_port,
        prefix_ranges,
        address_suffix,
        suffix_len,
        direct_source_prefix_ranges,
        source_type,
        source_prefix_ranges,
        source_ports,
        server_names,
        transport_protocol,
        application_protocols,
    }
}

fields! {
    manager: HttpConnectionManager {
        codec_type,
        stat_prefix,
        http_filters,
        add_user_agent,
        tracing,
        common_http_protocol_options,
        http1_safe_max_connection_duration,
        http_protocol_options,
        http2_protocol_options,
        http3_protocol_options,
        server_name,
        server_header_transformation,
        scheme_header_transformation,
        max_request_headers_kb,
        stream_idle_timeout,
        stream_flush_timeout,
        request_timeout,
        request_headers_timeout,
        drain_timeout,
        drain_timeout_jitter,
        delayed_close_timeout,
        access_log,
        access_log_flush_interval,
        flush_access_log_on_new_request,
        access_log_options,
        use_remote_address,
        xff_num_trusted_hops,
        original_ip_detection_extensions,
        early_header_mutation_extensions,
        internal_address_config,
        skip_xff_append,
        via,
        generate_request_id,
        preserve_external_request_id,
        always_set_request_id_in_response,
        forward_client_cert_details,
        set_current_client_cert_details,
        forward_client_cert_matcher,
        proxy_100_continue,
        represent_ipv4_remote_address_as_ipv4_mapped_ipv6,
        upgrade_configs,
        normalize_path,
        merge_slashes,
        path_with_escaped_slashes_action,
        request_id_extension,
        local_reply_config,
        strip_matching_host_port,
        stream_error_on_invalid_http_message,
        path_normalization_options,
        strip_trailing_host_dot,
        proxy_status_config,
        typed_header_validation_config,
        append_x_forwarded_port,
        append_local_overload,
        add_proxy_protocol_connection_state,
        forward_proto_config,
        route_specifier,
        strip_port_mode,
    }
}

fields! {
    route_configuration: RouteConfiguration {
        name,
        virtual_hosts,
        vhds,
        internal_only_headers,
        response_headers_to_add,
        response_headers_to_remove,
        request_headers_to_add,
        request_headers_to_remove,
        most_specific_header_mutations_wins,
        validate_clusters,
        max_direct_response_body_size_bytes,
        cluster_specifier_plugins,
        request_mirror_policies,
        ignore_port_in_host_matching,
        vhost_header,
        ignore_path_parameters_in_path_matching,
        typed_per_filter_config,
        metadata,
        route_specifiers,
    }
}

fields! {
    virtual_host: VirtualHost {
        name,
        domains,
        routes,
        matcher,
        require_tls,
        virtual_clusters,
        rate_limits,
        request_headers_to_add,
        request_headers_to_remove,
        response_headers_to_add,
        response_headers_to_remove,
        cors,
        typed_per_filter_config,
        include_request_attempt_count,
        include_attempt_count_in_response,
        retry_policy,
        retry_policy_typed_config,
        hedge_policy,
        include_is_timeout_retry_header,
        per_request_buffer_limit_bytes,
        request_body_buffer_limit,
        request_mirror_policies,
        metadata,
        route_specifiers,
    }
}

fields! {
    route: Route {
        name,
        r#match,
        metadata,
        decorator,
        typed_per_filter_config,
        request_headers_to_add,
        request_headers_to_remove,
        response_headers_to_add,
        response_headers_to_remove,
        tracing,
        per_request_buffer_limit_bytes,
        stat_prefix,
        request_body_buffer_limit,
        route_specifiers,
        action,
    }
}

fields! {
    route_action: RouteAction {
        cluster_not_found_response_code,
        metadata_match,
        prefix_rewrite,
        regex_rewrite,
        path_rewrite_policy,
        path_rewrite,
        append_x_forwarded_host,
        timeout,
        idle_timeout,
        flush_timeout,
        early_data_policy,
        retry_policy,
        retry_policy_typed_config,
        request_mirror_policies,
        priority,
        rate_limits,
        include_vh_rate_limits,
        hash_policy,
        cors,
        max_grpc_timeout,
        grpc_timeout_offset,
        upgrade_configs,
        internal_redirect_policy,
        internal_redirect_action,
        max_internal_redirects,
        hedge_policy,
        max_stream_duration,
        cluster_specifier,
        host_rewrite_specifier,
    }
}
