//! The pages of the documentation with code, as doctests. The tours are the examples of this
//! package.
#![cfg(doctest)]

/// The README's code, as a doctest.
#[doc = include_str!("../../../README.md")]
pub struct Readme;

/// The code of the page about embedding, as a doctest.
#[doc = include_str!("../../../docs/embed.md")]
pub struct Embed;

/// The code of the page about discovery, as a doctest.
#[doc = include_str!("../../../docs/discovery.md")]
pub struct Discovery;

/// The code of the page about Service Fabric, as a doctest.
#[doc = include_str!("../../../docs/service-fabric.md")]
pub struct ServiceFabric;

/// The code of the page about Serf, as a doctest.
#[doc = include_str!("../../../docs/serf.md")]
pub struct Serf;

/// The code of the page about Consul, as a doctest.
#[doc = include_str!("../../../docs/consul.md")]
pub struct Consul;

/// The code of the page about Azure, as a doctest.
#[doc = include_str!("../../../docs/azure.md")]
pub struct Azure;
