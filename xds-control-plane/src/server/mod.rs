//! The xDS server.

mod protocol;
mod view;

#[cfg(test)]
mod fixtures;
