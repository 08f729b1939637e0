//! The samplers of OpenTelemetry, by their names in `OTEL_TRACES_SAMPLER`.

use proxy_runtime::trace::Decision;

/// Decides which requests are recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sampler {
    /// True if the decision of a caller counts.
    pub(crate) is_parent_based: bool,
    pub(crate) root: Root,
}

/// The decision about requests whose caller has made none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Root {
    On,
    Off,
    /// A part of all traces, from 0 to 1.
    Ratio(f64),
}

impl Sampler {
    /// `parentbased_always_on`, the default of OpenTelemetry.
    pub(crate) const DEFAULT: Self = Self {
        is_parent_based: true,
        root: Root::On,
    };

    /// The sampler of this name. The errors are the allowed names.
    pub(crate) fn new(name: &str, ratio: f64) -> Result<Self, &'static str> {
        let (is_parent_based, root) = match name.strip_prefix("parentbased_") {
            Some(root) => (true, root),
            None => (false, name),
        };
        let root = match root {
            "always_on" => Root::On,
            "always_off" => Root::Off,
            "traceidratio" => Root::Ratio(ratio),
            _ => {
                return Err(
                    "`always_on`, `always_off`, `traceidratio`, or one of them after `parentbased_`",
                );
            }
        };
        Ok(Self {
            is_parent_based,
            root,
        })
    }

    /// True if nothing is ever recorded.
    pub(crate) fn is_off(self) -> bool {
        !self.is_parent_based && self.root == Root::Off
    }

    pub(crate) fn decide(self, trace_id: [u8; 16], caller: Option<bool>) -> Decision {
        let chosen = |is_chosen| match is_chosen {
            true => Decision::Record,
            false => Decision::Drop,
        };
        match (self.is_parent_based, caller) {
            (true, Some(is_sampled)) => chosen(is_sampled),
            _ => match self.root {
                Root::On => Decision::Record,
                // Who begins no traces makes no decision for destinations either.
                Root::Off => Decision::Ignore,
                Root::Ratio(ratio) => chosen(is_within(trace_id, ratio)),
            },
        }
    }
}

/// The rule of OpenTelemetry's SDKs, so that all services of a trace decide alike.
fn is_within(trace_id: [u8; 16], ratio: f64) -> bool {
    let [.., a, b, c, d, e, f, g, h] = trace_id;
    let low = u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 1;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a ratio from 0 to 1 of a number of 63 bits"
    )]
    let bound = (ratio * (1_u64 << 63) as f64) as u64;
    low < bound
}
