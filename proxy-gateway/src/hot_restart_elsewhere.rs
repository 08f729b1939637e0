//! Replacement on other systems than Linux, where sockets cannot be passed on: the settings reject the key,
//! and none of these values is ever created.

use std::convert::Infallible;
use std::path::Path;

pub(crate) type HotRestartError = Infallible;

pub(crate) enum Predecessor {}

impl Predecessor {
    pub(crate) async fn find(
        _: &Path,
    ) -> Result<Option<(Self, Vec<std::net::TcpListener>)>, HotRestartError> {
        Ok(None)
    }

    pub(crate) async fn gone(&self) -> Result<(), HotRestartError> {
        match *self {}
    }

    pub(crate) async fn replace(self) -> Result<Option<Infallible>, HotRestartError> {
        match self {}
    }
}

pub(crate) struct Offer;

impl Offer {
    pub(crate) fn open(_: &Path, _: Vec<std::net::TcpListener>) -> Result<Self, HotRestartError> {
        Ok(Self)
    }

    pub(crate) fn keep(&mut self, _: Option<Infallible>) {}

    pub(crate) fn publish(&mut self) -> Result<(), HotRestartError> {
        Ok(())
    }

    pub(crate) async fn taken(&mut self) {
        std::future::pending().await
    }
}
