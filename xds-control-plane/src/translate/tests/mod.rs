//! The cases of routes, clusters and endpoints.

mod clusters;
mod domains;
mod endpoints;
mod published;
mod routes;
mod world;
