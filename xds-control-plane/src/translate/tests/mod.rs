//! The cases of routes, clusters and endpoints.

mod clusters;
mod endpoints;
mod routes;
mod world;
