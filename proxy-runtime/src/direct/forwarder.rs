//! Forwarding to a destination that the caller names.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use parking_lot::Mutex;
use proxy_model::config::{ClusterConfig, DestinationConfig, ProxyConfig, RouteConfig};
use proxy_model::{ClusterId, CompileOptions, DestinationId, Problems, RouteId, Snapshot};
use tower_service::Service;

use crate::filter::Filter;
use crate::response::ProxyBody;
use crate::upstream::UpstreamOptions;
use crate::{BoxError, Proxy, ProxyService};

/// Destinations whose connections a forwarder keeps.
const MOST: usize = 1024;

/// Settings of a [`Forwarder`].
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ForwarderOptions {
    /// `Transforms`, `Timeout` and `MaxRequestBodySize` of requests. Default: those of a route without any.
    pub route: RouteConfig,
    /// `HttpClient` and `HttpRequest` of connections. Default: those of a cluster without any.
    pub cluster: ClusterConfig,
    /// Limits of connections, and TLS.
    pub upstream: UpstreamOptions,
    /// Sees and changes the heads of all requests and responses. It runs before `Transforms`.
    pub transform: Option<Arc<dyn Filter>>,
}

/// Sends requests to destinations that the caller names, without a configuration: YARP's `IHttpForwarder`. Bodies
/// stream, protocols switch, and errors become responses, as for routes.
///
/// A forwarder keeps the connections of the last 1,024 destinations, counted by the text of their addresses.
///
/// # Examples
///
/// ```
/// use proxy_runtime::direct::{Forwarder, ForwarderOptions};
/// use proxy_runtime::http::{Request, Response};
/// use proxy_runtime::{ProxyBody, forward::ExchangeInfo};
///
/// async fn to_tenant(forwarder: &Forwarder, request: Request<ProxyBody>) -> Response<ProxyBody> {
///     let sent = forwarder.send(request, "http://tenant-7.internal:8080/");
///     let response = sent.await.expect("the address is a URL");
///     if let Some(error) = response.extensions().get::<ExchangeInfo>().and_then(|info| info.error) {
///         eprintln!("not forwarded: {error:?}");
///     }
///     response
/// }
/// # let forwarder = Forwarder::new(ForwarderOptions::default()).expect("the defaults are valid");
/// # drop(forwarder);
/// ```
pub struct Forwarder {
    options: ForwarderOptions,
    services: Mutex<Services>,
}

/// The services of the last destinations, with the turn of their last use.
#[derive(Default)]
struct Services {
    known: HashMap<Box<str>, (ProxyService, u64)>,
    turn: u64,
}

impl Forwarder {
    /// Makes a forwarder.
    ///
    /// # Errors
    ///
    /// The options are invalid.
    pub fn new(options: ForwarderOptions) -> Result<Self, Problems> {
        let this = Self {
            options,
            services: Mutex::default(),
        };
        // The options are checked now, and not by the first request.
        this.build("http://localhost/")?;
        Ok(this)
    }

    /// Returns a tower service that sends all requests to a destination: YARP's `MapForwarder`. `destination` is an
    /// `http://` or `https://` URL, optionally with a base path, which comes before the path of requests.
    ///
    /// # Errors
    ///
    /// `destination` is no such URL.
    pub fn service(&self, destination: &str) -> Result<ProxyService, Problems> {
        let mut services = self.services.lock();
        services.turn += 1;
        let turn = services.turn;
        if let Some((service, used)) = services.known.get_mut(destination) {
            *used = turn;
            return Ok(service.clone());
        }
        let service = self.build(destination)?;
        if services.known.len() >= MOST {
            // A search through all is rare: only a new destination of a full forwarder needs it.
            let oldest = services.known.iter().min_by_key(|(_, (_, used))| *used);
            let oldest = oldest.map(|(destination, _)| destination.clone());
            oldest.map(|oldest| services.known.remove(&oldest));
        }
        let known = (service.clone(), turn);
        services.known.insert(destination.into(), known);
        Ok(service)
    }

    /// Sends a request. Its [`ConnectionInfo`](crate::ConnectionInfo) among the extensions becomes `X-Forwarded-For`;
    /// the [`ExchangeInfo`](crate::forward::ExchangeInfo) of the response has the error, if there was one.
    ///
    /// # Errors
    ///
    /// `destination` is no URL, as in [`service`](Self::service).
    pub fn send<B>(
        &self,
        request: Request<B>,
        destination: &str,
    ) -> impl Future<Output = Result<Response<ProxyBody>, Problems>> + Send + use<B>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let response = self
            .service(destination)
            .map(|mut service| service.call(request));
        async move {
            match response?.await {
                Ok(response) => Ok(response),
                Err(never) => match never {},
            }
        }
    }

    fn build(&self, destination: &str) -> Result<ProxyService, Problems> {
        const NAME: &str = "direct";
        let ForwarderOptions {
            route,
            cluster,
            upstream,
            transform,
        } = &self.options;
        let id = ClusterId::from(NAME);
        let mut route = RouteConfig {
            cluster_id: Some(id.clone()),
            ..route.clone()
        };
        route.r#match = proxy_model::config::RouteMatch {
            path: Some("/{**rest}".to_owned()),
            ..Default::default()
        };
        let mut builder = Proxy::builder().upstream(upstream.clone());
        if let Some(transform) = transform.clone() {
            builder = builder.route_hook(move |_| vec![Arc::clone(&transform)]);
        }
        let mut cluster = cluster.clone();
        let address = DestinationConfig {
            address: destination.to_owned(),
            ..DestinationConfig::default()
        };
        cluster.destinations = [(DestinationId::from(NAME), address)].into_iter().collect();
        let mut config = ProxyConfig::default();
        config.routes.insert(RouteId::from(NAME), route);
        config.clusters.insert(id, cluster);
        let (snapshot, _) = Snapshot::compile(config, &CompileOptions::default())?;
        // The one destination never changes, so no driver is needed.
        let (proxy, _) = builder.snapshot(Arc::new(snapshot)).build()?;
        Ok(proxy.service())
    }
}

impl fmt::Debug for Forwarder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forwarder")
            .field("destinations", &self.services.lock().known.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ForwarderOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForwarderOptions")
            .field("route", &self.route)
            .field("cluster", &self.cluster)
            .finish_non_exhaustive()
    }
}
