//! The integration tests, in one program: each links the whole of the crate and its dependencies.

mod forward;
mod health;
mod llhttp;
mod server;
mod server_reload;
