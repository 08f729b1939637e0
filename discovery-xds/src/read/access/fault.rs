//! The filter that injects faults.

use prost::Message;
use xds_types::pb::google::protobuf::Any;

const FAULT: &str = "type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault";

/// The field of `HTTPFault` by which requests are rejected. Other fields delay them.
#[derive(Clone, PartialEq, Message)]
struct HttpFault {
    #[prost(bytes = "vec", optional, tag = "2")]
    abort: Option<Vec<u8>>,
}

/// Returns true if the configuration is one of faults that reject requests, or cannot be read.
pub(super) fn aborts(config: &Any) -> bool {
    let only_delays =
        || HttpFault::decode(config.value.as_slice()).is_ok_and(|fault| fault.abort.is_none());
    config.type_url == FAULT && !only_delays()
}
