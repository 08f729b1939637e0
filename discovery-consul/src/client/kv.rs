//! Keys and values.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::call::Call;
use super::query::{Answer, Query};
use super::{ConsulClient, ConsulError};

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[non_exhaustive]
pub struct KvPair {
    /// The key.
    pub key: String,
    /// The value: any bytes.
    #[serde(default, deserialize_with = "decoded")]
    pub value: Vec<u8>,
    /// A number that the writer has chosen.
    #[serde(default)]
    pub flags: u64,
    /// Moves when the value does.
    #[serde(default)]
    pub modify_index: u64,
}

/// Consul writes `null` for an empty value.
fn decoded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?.unwrap_or_default();
    STANDARD.decode(text).map_err(D::Error::custom)
}

impl ConsulClient {
    /// Returns the value of a key: `/v1/kv/:key`. `None` if there is no such key, for which a query can
    /// block too.
    ///
    /// # Errors
    ///
    /// See [`ConsulErrorKind`](super::ConsulErrorKind).
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time, which aborts the exchange.
    pub async fn kv_get(
        &self,
        key: &str,
        query: &Query,
    ) -> Result<Answer<Option<KvPair>>, ConsulError> {
        let call = kv_call(Call::get, key).query(query);
        let answer: Answer<Option<Vec<KvPair>>> = self.json_if_found(call).await?;
        Ok(answer.map(|pairs| pairs.and_then(|pairs| pairs.into_iter().next())))
    }

    /// Returns all keys that begin with a prefix: `/v1/kv/:prefix?recurse`.
    ///
    /// # Errors
    ///
    /// See [`ConsulErrorKind`](super::ConsulErrorKind).
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time, which aborts the exchange.
    pub async fn kv_list(
        &self,
        prefix: &str,
        query: &Query,
    ) -> Result<Answer<Vec<KvPair>>, ConsulError> {
        let call = kv_call(Call::get, prefix).flag("recurse").query(query);
        let answer = self.json_if_found(call).await?;
        Ok(answer.map(Option::unwrap_or_default))
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    ///
    /// See [`ConsulErrorKind`](super::ConsulErrorKind).
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time. The agent may have executed the request or not.
    pub async fn kv_put(&self, key: &str, value: impl Into<Bytes>) -> Result<(), ConsulError> {
        self.done(kv_call(Call::put, key).body(value)).await
    }

    /// Deletes a key. A missing key is not an error.
    ///
    /// # Errors
    ///
    /// See [`ConsulErrorKind`](super::ConsulErrorKind).
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time. The agent may have executed the request or not.
    pub async fn kv_delete(&self, key: &str) -> Result<(), ConsulError> {
        let delete = |parts: Vec<&str>| Call::new(http::Method::DELETE, parts);
        self.done(kv_call(delete, key)).await
    }
}

/// Slashes in a key separate parts of the path.
fn kv_call<'k>(make: impl FnOnce(Vec<&'k str>) -> Call, key: &'k str) -> Call {
    let parts = std::iter::once("kv").chain(key.split('/'));
    make(parts.collect())
}
