use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fontis_codes::BlockShape;

use super::params::Params;

/// Bytes that a block, a message or a channel costs beside its content.
pub(super) const ENTRY: u64 = 512;
/// Bytes that a path beside the first costs, its window of packet numbers at its widest included.
pub(super) const PATH: u64 = 48 << 10;
/// Bytes that a symbol costs beside its content: places in lists, trees and plans.
const SYMBOL: u64 = 64;
/// The least that a connection may hold.
const LEAST: u64 = 64 << 20;

/// The memory that the connections of an endpoint share.
///
/// A connection may hold no more than is left for others. Few connections so get much, many get
/// less, and there is always something left for the next.
#[derive(Clone, Debug)]
pub struct MemoryBudget(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    most: u64,
    used: AtomicU64,
}

impl MemoryBudget {
    /// A budget of this many bytes.
    pub fn new(bytes: u64) -> Self {
        Self(Arc::new(Pool { most: bytes, used: AtomicU64::new(0) }))
    }

    /// The bytes that are held at present.
    pub fn used(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
    }
}

/// The bytes of blocks and messages that a connection holds for its peer.
pub(super) struct Account(Arc<Purse>);

struct Purse {
    most: u64,
    used: AtomicU64,
    budget: Option<MemoryBudget>,
}

/// The reason why something is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// The connection holds as much as it may, and something of it will go.
    Connection,
    /// It is more than the connection may ever hold, or the endpoint has no more memory.
    Refused,
}

impl Account {
    /// An account of a connection with these parameters of its own: it holds the windows of four
    /// channels, and enough blocks of any size.
    pub(super) fn new(params: &Params, budget: Option<MemoryBudget>) -> Self {
        let windows = 4 * u64::from(params.window());
        let most = windows.max(8 * u64::from(params.max_block())).max(LEAST);
        Self(Arc::new(Purse { most, used: AtomicU64::new(0), budget }))
    }

    /// The bytes that are held.
    pub(super) fn used(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
    }

    /// Takes `bytes` if the budgets allow it.
    pub(super) fn take(&self, bytes: u64) -> Result<Charge, Full> {
        let used = self.used().saturating_add(bytes);
        let left = self.0.budget.as_ref().map_or(u64::MAX, |budget| {
            budget.0.most.saturating_sub(budget.used().saturating_add(bytes))
        });
        match used {
            _ if bytes > self.0.most || used > left => Err(Full::Refused),
            _ if used > self.0.most => Err(Full::Connection),
            _ => Ok(self.force(bytes)),
        }
    }

    /// Takes `bytes` in any case: another rule bounds them.
    pub(super) fn force(&self, bytes: u64) -> Charge {
        let mut charge = Charge { purse: self.0.clone(), bytes: 0 };
        charge.set(bytes);
        charge
    }
}

/// Bytes that are held; dropped, they are given back.
pub(super) struct Charge {
    purse: Arc<Purse>,
    bytes: u64,
}

impl Charge {
    /// From now on it is so many bytes.
    pub(super) fn set(&mut self, bytes: u64) {
        let change = bytes.wrapping_sub(self.bytes);
        self.bytes = bytes;
        self.purse.used.fetch_add(change, Ordering::Relaxed);
        if let Some(budget) = &self.purse.budget {
            budget.0.used.fetch_add(change, Ordering::Relaxed);
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// The bytes that a block costs while it is received or sent: its source symbols, as much again for
/// repair symbols, and the lists.
pub(super) fn block_cost(shape: BlockShape) -> u64 {
    let symbols = u64::from(shape.source_symbols());
    let bytes =
        if shape.code().carries_bytes() { symbols * u64::from(shape.symbol_size()) } else { 0 };
    ENTRY + 2 * bytes + symbols * SYMBOL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_are_given_back_to_the_connection_and_the_endpoint() {
        let budget = MemoryBudget::new(1 << 30);
        let account = Account::new(&Params::default(), Some(budget.clone()));
        let first = account.take(100).unwrap();
        let mut second = account.take(50).unwrap();
        second.set(70);
        assert_eq!((account.used(), budget.used()), (170, 170));
        drop(second);
        assert_eq!((account.used(), budget.used()), (100, 100));
        drop(first);
        assert_eq!((account.used(), budget.used()), (0, 0));
    }

    #[test]
    fn a_connection_holds_no_more_than_is_left_for_others() {
        let budget = MemoryBudget::new(300 << 20);
        let accounts: Vec<_> =
            (0..4).map(|_| Account::new(&Params::default(), Some(budget.clone()))).collect();
        let mut charges = Vec::new();
        for account in &accounts {
            while let Ok(charge) = account.take(1 << 20) {
                charges.push(charge);
            }
        }
        let used: Vec<_> = accounts.iter().map(|account| account.used() >> 20).collect();
        assert_eq!(used, [150, 75, 37, 19]);
        assert_eq!(accounts[3].take(1 << 20).err(), Some(Full::Refused));
        drop(charges);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_full_connection_waits_and_what_never_fits_is_refused() {
        let account = Account::new(&Params::default(), None);
        let most = 256 << 20;
        let _half = account.take(most / 2).unwrap();
        assert_eq!(account.take(most / 2 + 1).err(), Some(Full::Connection));
        assert_eq!(account.take(most + 1).err(), Some(Full::Refused));
    }
}
