//! Certificates for tests, and TLS configurations with them.
//!
//! Every configuration has its own cryptography (aws-lc-rs). No process-wide default is installed,
//! so tests neither need nor affect one.
//!
//! ```
//! use testkit::certs::{Alpn, CertificateAuthority};
//! use testkit::client::Connection;
//! use testkit::origin::Origin;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), testkit::client::ClientError> {
//! let ca = CertificateAuthority::new("test");
//! let server = ca.issue(&["a.example", "127.0.0.1"]);
//! let origin = Origin::builder().tls(server.server_config(Alpn::Both)).start_echo();
//!
//! let trusting = ca.client_config(Alpn::Both);
//! let mut client = Connection::tls(origin.addr(), "a.example", trusting).await?;
//! let echo: testkit::origin::Echo = client.get("/").await?.json();
//! assert_eq!(echo.version, "HTTP/2.0");
//! assert_eq!(echo.server_name.as_deref(), Some("a.example"));
//! # Ok(())
//! # }
//! ```

mod authority;
mod config;
mod identity;
mod leaf;
mod pem;

#[cfg(test)]
mod tests;

pub use self::authority::CertificateAuthority;
pub use self::config::{Alpn, provider, trusting_no_one};
pub use self::identity::Identity;
pub use self::leaf::{Leaf, Usage};
pub use self::pem::PemFiles;
