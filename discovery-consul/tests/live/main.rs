//! Against real agents of HashiCorp Consul. Skipped, loudly, if the program is missing.

mod access;
mod contract;
mod faults;
mod news;
mod registration;
mod support;
