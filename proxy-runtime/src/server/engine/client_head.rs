//! Response heads for clients of HTTP/1.1.

use http::StatusCode;

use crate::affinity::NewKey;
use crate::forward::exchange::filtering::Received;
use crate::head::HeaderMutations;
use crate::http1::{
    Copied, FieldClass, FieldName, FieldOperation, Framing, HeadTable, OutgoingConnection,
    ResponseRewrite, write_response,
};
use crate::server::http1::date::write_date;
use crate::stream::recycled;
use crate::transform::{CompiledTransforms, with_slice};

/// The changes to a response head for the client.
pub(super) struct ForClient<'e> {
    /// The route's transforms.
    pub(super) plan: &'e CompiledTransforms,
    /// The `Connection` field for the client.
    pub(super) connection: OutgoingConnection<'e>,
    /// The changes of filters, if there are any.
    pub(super) edits: Option<&'e HeaderMutations>,
    /// The affinity key that the client gets, if it needs one.
    pub(super) key: Option<NewKey>,
}

impl ForClient<'_> {
    /// Writes the head to `output`.
    // Apart from the exchange, in which the compiler would inline the writes no more.
    #[inline(never)]
    pub(super) fn write(&self, status: StatusCode, received: Received<'_>, output: &mut Vec<u8>) {
        let plan = self.plan;
        let (_, response, _) = received;
        let mut rewrite = ResponseRewrite::new(response);
        // A body that ends with the destination's connection is forwarded in chunks.
        rewrite.chunked |= response.framing() == Framing::UntilClose;
        rewrite.connection = self.connection;
        rewrite.copied = plan.response_copy.copied();
        let given = &*plan.response;
        if given.is_empty() && self.key.is_none() && self.edits.is_none() {
            write_head(received, &rewrite, output);
            return;
        }
        let edits = self.edits.into_iter().flat_map(HeaderMutations::operations);
        let route = given.iter().map(|given| given.for_status(status));
        // Behind what the route says, which cannot take it away.
        let key = self.key.iter().flat_map(NewKey::operations);
        with_slice(edits.chain(route).chain(key), |operations| {
            let rewrite = ResponseRewrite {
                operations,
                ..rewrite
            };
            write_head(received, &rewrite, output);
        });
    }
}

#[inline]
fn write_head(
    (buffer, response, table): Received<'_>,
    rewrite: &ResponseRewrite<'_>,
    output: &mut Vec<u8>,
) {
    // The output needs no memory while the response is waited for.
    recycled::acquire(output);
    write_response(buffer, response, table, rewrite, output);
    // A recipient adds a missing date (RFC 9110 section 6.6.1).
    if !has_date(table, rewrite) {
        append_date(output);
    }
}

/// Returns true if the head has a date.
#[inline]
fn has_date(table: &HeadTable, rewrite: &ResponseRewrite<'_>) -> bool {
    let classes = table.classes();
    // A date that `Connection` names is not forwarded, though it is among the classes.
    let has_come = classes.contains(FieldClass::Date)
        && (!classes.contains(FieldClass::NamedByConnection)
            || table
                .fields()
                .iter()
                .any(|field| field.class() == FieldClass::Date));
    let is = |name: &FieldName| name.class() == FieldClass::Date;
    let stays = match rewrite.copied {
        Copied::Only(names) => has_come && names.iter().any(is),
        Copied::None => false,
        Copied::All => has_come,
    };
    let operations = rewrite.operations.iter();
    // The last operation on the field decides.
    operations.fold(stays, |has_date, operation| match operation {
        FieldOperation::Remove(name) if is(name) => false,
        FieldOperation::Set(name, _) | FieldOperation::Append(name, _) if is(name) => true,
        _ => has_date,
    })
}

/// Adds the current date to a complete head.
#[cold]
fn append_date(output: &mut Vec<u8>) {
    output.truncate(output.len() - 2);
    output.extend_from_slice(b"date: ");
    write_date(output);
    output.extend_from_slice(b"\r\n\r\n");
}
