//! Services, their health, and datacenters.

use super::call::Call;
use super::model::{Check, HealthEntry, ServiceTags};
use super::query::{Answer, Query};
use super::{ConsulClient, ConsulError};

impl ConsulClient {
    /// Returns the names of all services of a datacenter, with the tags of all their instances:
    /// `/v1/catalog/services`.
    ///
    /// A token without read access gets an empty result, and no error.
    ///
    /// # Errors
    ///
    /// See [`ConsulErrorKind`](super::ConsulErrorKind).
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time, which aborts the exchange.
    pub async fn services(&self, query: &Query) -> Result<Answer<ServiceTags>, ConsulError> {
        let call = Call::get(["catalog", "services"]).query(query);
        let answer: Answer<Option<ServiceTags>> = self.json(call).await?;
        Ok(answer.map(Option::unwrap_or_default))
    }

    /// Returns all instances of a service with their checks, healthy or not: `/v1/health/service/:name`. A
    /// missing service has none.
    ///
    /// # Errors
    ///
    /// See [`ConsulErrorKind`](super::ConsulErrorKind).
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time, which aborts the exchange.
    pub async fn health_service(
        &self,
        name: &str,
        query: &Query,
    ) -> Result<Answer<Vec<HealthEntry>>, ConsulError> {
        let call = Call::get(["health", "service", name]).query(query);
        self.list(call).await
    }

    /// Returns the instances of a service whose checks all pass.
    ///
    /// # Errors
    ///
    /// See [`ConsulErrorKind`](super::ConsulErrorKind).
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time, which aborts the exchange.
    pub async fn passing(
        &self,
        name: &str,
        query: &Query,
    ) -> Result<Answer<Vec<HealthEntry>>, ConsulError> {
        let call = Call::get(["health", "service", name]).query(query);
        self.list(call.flag("passing")).await
    }

    /// Returns all checks of a datacenter, of nodes and instances: `/v1/health/state/any`. Instances
    /// without checks are not included.
    ///
    /// # Errors
    ///
    /// See [`ConsulErrorKind`](super::ConsulErrorKind).
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time, which aborts the exchange.
    pub async fn checks(&self, query: &Query) -> Result<Answer<Vec<Check>>, ConsulError> {
        let call = Call::get(["health", "state", "any"]).query(query);
        self.list(call).await
    }

    /// Returns the datacenters that the servers know, the nearest first: `/v1/catalog/datacenters`. A
    /// datacenter that is down stays in the list. There is no index, so the query cannot block.
    ///
    /// # Errors
    ///
    /// See [`ConsulErrorKind`](super::ConsulErrorKind).
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time, which aborts the exchange.
    pub async fn datacenters(&self) -> Result<Answer<Vec<String>>, ConsulError> {
        self.list(Call::get(["catalog", "datacenters"])).await
    }

    /// Returns the address of the leader, or `None` if there is none at the moment. `/v1/status/leader`,
    /// which needs no token.
    ///
    /// # Errors
    ///
    /// See [`ConsulErrorKind`](super::ConsulErrorKind).
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time, which aborts the exchange.
    pub async fn leader(&self) -> Result<Option<String>, ConsulError> {
        let answer: Answer<String> = self.json(Call::get(["status", "leader"])).await?;
        Ok(Some(answer.value).filter(|leader| !leader.is_empty()))
    }

    async fn list<T>(&self, call: Call) -> Result<Answer<Vec<T>>, ConsulError>
    where
        T: serde::de::DeserializeOwned,
    {
        let answer: Answer<Option<Vec<T>>> = self.json(call).await?;
        Ok(answer.map(Option::unwrap_or_default))
    }
}
