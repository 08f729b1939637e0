//! Redirects and fixed responses of routes.

use http::header::CONTENT_TYPE;
use proxy_model::compiled::{FixedResponse, Redirect, Route};
use xds_types::pb::envoy::config::core::v3::DataSource;
use xds_types::pb::envoy::config::core::v3::data_source::Specifier;
use xds_types::pb::envoy::config::route::v3::redirect_action::{
    PathRewriteSpecifier, RedirectResponseCode, SchemeRewriteSpecifier,
};
use xds_types::pb::envoy::config::route::v3::route::Action;
use xds_types::pb::envoy::config::route::v3::{DirectResponseAction, RedirectAction};

use super::report::Inexpressible;

pub(super) fn redirect(route: &Route, redirect: &Redirect) -> Result<Action, Inexpressible> {
    let config = route.config().redirect.as_deref();
    let path = config.and_then(|config| config.path.as_deref());
    if path.is_some_and(|path| path.contains('{')) {
        return Err(Inexpressible::new(
            "Redirect/Path",
            "Envoy's redirects have no values of the path",
        ));
    }
    let authority = redirect.authority().unwrap_or_default();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().unwrap_or_default()),
        _ => (authority, 0),
    };
    let code = match redirect.status().as_u16() {
        301 => RedirectResponseCode::MovedPermanently,
        302 => RedirectResponseCode::Found,
        303 => RedirectResponseCode::SeeOther,
        308 => RedirectResponseCode::PermanentRedirect,
        _ => RedirectResponseCode::TemporaryRedirect,
    };
    let scheme = redirect.scheme().map(|scheme| scheme.as_str().to_owned());
    Ok(Action::Redirect(RedirectAction {
        host_redirect: host.to_owned(),
        port_redirect: port,
        response_code: code.into(),
        strip_query: false,
        scheme_rewrite_specifier: scheme.map(SchemeRewriteSpecifier::SchemeRedirect),
        path_rewrite_specifier: path
            .map(|path| PathRewriteSpecifier::PathRedirect(path.to_owned())),
    }))
}

pub(super) fn respond(fixed: &FixedResponse) -> Result<Action, Inexpressible> {
    // Envoy writes this one itself.
    let mut headers = fixed.headers().iter();
    let is_own = |(name, value): &(http::HeaderName, http::HeaderValue)| {
        name == CONTENT_TYPE && value.as_bytes().starts_with(b"text/plain")
    };
    if !headers.all(is_own) {
        return Err(Inexpressible::new(
            "Respond/Headers",
            "Envoy's direct responses have no headers of their own",
        ));
    }
    let body = fixed.body();
    let body = (!body.is_empty()).then(|| DataSource {
        specifier: Some(Specifier::InlineString(body.to_owned())),
        ..DataSource::default()
    });
    Ok(Action::DirectResponse(DirectResponseAction {
        status: fixed.status().as_u16().into(),
        body,
        ..DirectResponseAction::default()
    }))
}
