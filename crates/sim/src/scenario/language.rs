//! The language of scenarios with a set of transports.

use std::sync::{Arc, LazyLock};

use crate::host::rows::TRANSPORTS;
use crate::host::table::TransportRow;
use crate::scenario::keys::{FLOWS, TABLES};
use crate::settings::catalogue::Catalogue;

/// The transports that scenarios may use, and all that can be set.
#[derive(Clone, Debug)]
pub struct Language {
    catalogue: Catalogue,
    transports: Vec<&'static TransportRow>,
}

static STANDARD: LazyLock<Arc<Language>> =
    LazyLock::new(|| Arc::new(Language::with(TRANSPORTS.to_vec())));

impl Language {
    /// The language with the laboratory's transports.
    pub fn standard() -> Arc<Self> {
        Arc::clone(&STANDARD)
    }

    /// The language with these transports.
    pub fn with(transports: Vec<&'static TransportRow>) -> Self {
        let own = transports.iter().flat_map(|transport| transport.tables);
        let tables = TABLES.iter().chain(own).chain([&FLOWS]).copied().collect();
        let protocols = transports.iter().flat_map(|transport| (transport.protocols)());
        let catalogue = Catalogue::new(tables, protocols.collect());
        Self { catalogue, transports }
    }

    /// All that can be set.
    pub const fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The transports.
    pub fn transports(&self) -> &[&'static TransportRow] {
        &self.transports
    }

    /// The transport of a protocol.
    pub fn transport(&self, protocol: &str) -> Option<&'static TransportRow> {
        let mut transports = self.transports.iter();
        transports.find(|transport| (transport.protocols)().contains(&protocol)).copied()
    }
}
