//! Redirects and fixed responses of routes.

use http::header::CONTENT_TYPE;
use proxy_model::compiled::{FixedResponse, Redirect, Route};
use proxy_model::matching::PathTemplate;
use proxy_model::transform::PathText;
use xds_types::pb::envoy::config::core::v3::DataSource;
use xds_types::pb::envoy::config::core::v3::data_source::Specifier;
use xds_types::pb::envoy::config::route::v3::redirect_action::{
    PathRewriteSpecifier, RedirectResponseCode, SchemeRewriteSpecifier,
};
use xds_types::pb::envoy::config::route::v3::route::Action;
use xds_types::pb::envoy::config::route::v3::{DirectResponseAction, RedirectAction};

use super::report::{Inexpressible, Report};
use super::rewrite;

pub(super) fn redirect(
    route: &Route,
    redirect: &Redirect,
    report: &mut Report<'_>,
) -> Result<Action, Inexpressible> {
    let path = redirect.path().map(|path| self::path(route, path, report));
    let path = path.transpose()?;
    if redirect.scheme().is_some() && redirect.authority().is_none() {
        report.differs(
            "Redirect/Scheme",
            "Envoy keeps a port of the client's URL that is not the usual one",
        );
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
        path_rewrite_specifier: path,
    }))
}

fn path(
    route: &Route,
    path: &PathTemplate,
    report: &mut Report<'_>,
) -> Result<PathRewriteSpecifier, Inexpressible> {
    if path.parameter_names().next().is_none() {
        // Templates have no `/` at their end.
        let text = path.as_str().trim_end_matches('/');
        let path = PathText::new(if text.is_empty() { "/" } else { text });
        return Ok(PathRewriteSpecifier::PathRedirect(path.as_str().to_owned()));
    }
    let rewrite = rewrite::redirected(path, route.matcher().path(), report);
    let rewrite = rewrite.map_err(|reason| Inexpressible::new("Redirect/Path", reason.message))?;
    Ok(PathRewriteSpecifier::RegexRewrite(rewrite))
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
