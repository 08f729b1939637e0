//! The header that gives clients of trusted networks the cause of an error.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::connection::{ConnectionInfo, Network};
use crate::error::Cause;

/// The header of error responses with their [cause](Cause).
const CAUSE: HeaderName = HeaderName::from_static("x-proxy-cause");

/// The clients that get the cause of an error in a header.
#[derive(Debug)]
pub(crate) struct CauseHeader(Box<[Network]>);

impl CauseHeader {
    pub(crate) fn new(networks: impl IntoIterator<Item = Network>) -> Self {
        Self(networks.into_iter().collect())
    }

    /// Returns true if the client may see causes. One whose address is unknown may not.
    pub(crate) fn is_for(&self, connection: ConnectionInfo) -> bool {
        let client = connection.client_address();
        client.is_some_and(|client| self.0.iter().any(|network| network.contains(client)))
    }

    /// Sets the header of an error response.
    pub(crate) fn write(cause: Cause, headers: &mut HeaderMap) {
        let value = HeaderValue::from_static(cause.as_str());
        // The map holds 32,768 fields, more than a response of the proxy has.
        let _ = headers.try_insert(CAUSE, value);
    }
}
