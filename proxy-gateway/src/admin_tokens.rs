//! The follower of the file with the tokens of the admin page.

use proxy_runtime::admin::Admin;

use crate::faults::Faults;
use crate::secret_file::{SecretFile, Wording};
use crate::settings::{TOKEN_FILE, TokenSource};

const WORDING: Wording = Wording {
    plural: "the tokens of the admin page",
    new: "the new tokens of the admin page",
    pointer: TOKEN_FILE,
    code: "unusable_token",
};

/// Installs the tokens of a file as it changes.
pub(crate) async fn follow(admin: Admin, file: SecretFile, faults: Faults) {
    let read = |file| TokenSource::File(file).tokens();
    let install = |tokens| admin.set_tokens(tokens);
    file.follow(WORDING, read, install, faults).await;
}
