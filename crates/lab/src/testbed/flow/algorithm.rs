use std::sync::Arc;

use fontis_proto::congestion::CongestionKind;
use fontis_proto::tcp::TcpConfig;

use crate::kernel::Loaded;
use crate::testbed::error::TestbedError;

/// The congestion control of a connection of the kernel's TCP.
#[derive(Clone, Debug)]
pub(super) enum Algorithm {
    /// The kernel's own.
    Native(&'static str),
    /// Ours, loaded for as long as connections of this process have it.
    Loaded(Arc<Loaded>),
}

impl Algorithm {
    /// The algorithm that a flow asks for.
    pub(super) fn of(flow: &str, config: &TcpConfig) -> Result<Self, TestbedError> {
        let kind = config.congestion;
        if config.foreign.is_some() {
            return Err(TestbedError::Unsupported(format!(
                "{flow}: the kernel's {kind} has rules of its own; the simulator has others, too"
            )));
        }
        if kind == CongestionKind::Fld {
            let loaded = Loaded::shared(kind.name());
            return loaded.map(Self::Loaded).map_err(|error| {
                TestbedError::Unsupported(format!("{flow}: {error}; the simulator has {kind}, too"))
            });
        }
        native(kind).map(Self::Native).ok_or_else(|| {
            TestbedError::Unsupported(format!("{flow}: no kernel has {kind}; the simulator does"))
        })
    }

    /// The name by which sockets choose it.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Native(name) => name,
            Self::Loaded(loaded) => loaded.name(),
        }
    }
}

/// The name that the kernel gives a congestion control.
fn native(kind: CongestionKind) -> Option<&'static str> {
    Some(match kind {
        CongestionKind::NewReno => "reno",
        CongestionKind::Cubic | CongestionKind::CubicHyStart => "cubic",
        CongestionKind::Vegas => "vegas",
        CongestionKind::Bbr => "bbr",
        CongestionKind::Dctcp => "dctcp",
        _ => return None,
    })
}
