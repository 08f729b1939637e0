//! The integration tests, in one program: each links the whole of the crate and its dependencies.

mod forward;
mod health;
#[cfg(feature = "testing")]
mod llhttp;
mod server;
mod server_reload;

/// Returns the default value with a change.
fn changed<T: Default>(change: impl FnOnce(&mut T)) -> T {
    let mut made = T::default();
    change(&mut made);
    made
}
