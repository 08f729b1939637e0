//! The follower of the file with affinity keys.

use proxy_runtime::Proxy;

use crate::faults::Faults;
use crate::secret_file::{SecretFile, Wording};
use crate::settings::{AFFINITY_KEYS_FILE, AffinityKeySource};

const WORDING: Wording = Wording {
    plural: "the affinity keys",
    new: "the new affinity keys",
    pointer: AFFINITY_KEYS_FILE,
    code: "unusable_affinity_keys",
};

/// Installs the keys of a file as it changes.
pub(crate) async fn follow(proxy: Proxy, file: SecretFile, faults: Faults) {
    let read = |file| AffinityKeySource::File(file).keys();
    let install = |keys| proxy.set_affinity_keys(keys);
    file.follow(WORDING, read, install, faults).await;
}
