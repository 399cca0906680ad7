use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use bytes::Bytes;

use super::code::WindowCode;
use super::symbol::{RepairSymbol, WindowError};
use crate::gf256::inverse;
use crate::multiples::{add_multiple, add_multiple_of_symbol};
use crate::simd::Level;

/// Restores source symbols from those that arrive and from repair symbols, in order.
pub struct WindowDecoder {
    code: WindowCode,
    symbol_size: usize,
    /// Source symbols before this one were delivered or given up.
    next: u32,
    /// One beyond the last source symbol that anything said of.
    end: u32,
    /// Source symbols that are known, as far back as repair symbols may need them.
    known: BTreeMap<u32, Bytes>,
    /// Equations, each solved for its first unknown, which no other has.
    rows: BTreeMap<u32, Row>,
    level: Level,
}

/// The sum of unknowns `first + i` times `factors[i]` is `data`.
struct Row {
    first: u32,
    factors: Vec<u8>,
    data: Vec<u8>,
}

impl WindowDecoder {
    /// A decoder of source symbols of `symbol_size` bytes. It keeps at most three of the code's
    /// windows of symbols, and one of equations.
    pub fn new(code: WindowCode, symbol_size: u16) -> Self {
        let symbol_size = usize::from(symbol_size);
        let level = Level::detect();
        Self {
            code,
            symbol_size,
            next: 0,
            end: 0,
            known: BTreeMap::new(),
            rows: BTreeMap::new(),
            level,
        }
    }

    /// Takes source symbol `id`; true if it was of use.
    pub fn add_source(&mut self, id: u32, symbol: &[u8]) -> Result<bool, WindowError> {
        self.check_length(symbol)?;
        self.advance(id)?;
        if id < self.oldest() || self.known.contains_key(&id) {
            return Ok(false);
        }
        self.learn(id, Bytes::copy_from_slice(symbol));
        self.harvest();
        Ok(true)
    }

    /// Takes a repair symbol; true if it was of use: it restored something, or may yet.
    pub fn add_repair(&mut self, repair: &RepairSymbol) -> Result<bool, WindowError> {
        let RepairSymbol { first, count, id, ref data } = *repair;
        self.check_length(data)?;
        let last = (u32::from(count).checked_sub(1)).and_then(|more| first.checked_add(more));
        let last = match last {
            Some(last) if u32::from(count) <= self.code.window() && last < u32::MAX => last,
            _ => return Err(WindowError::Window { first, count }),
        };
        self.advance(last)?;
        let factors = self.code.coefficients(id, usize::from(count));
        let mut row = Row { first, factors, data: data.to_vec() };
        for (source, factor) in (first..=last).zip(&mut row.factors) {
            match self.known.get(&source) {
                Some(symbol) => {
                    add_multiple_of_symbol(self.level, &mut row.data, symbol, *factor);
                    *factor = 0;
                }
                // It was given up: nothing follows from a sum with it.
                None if source < self.oldest() => return Ok(false),
                None => {}
            }
        }
        let is_of_use = self.insert(row);
        self.harvest();
        Ok(is_of_use)
    }

    /// The next source symbol in order, if it is known.
    pub fn pop(&mut self) -> Option<(u32, Bytes)> {
        let symbol = self.known.get(&self.next)?.clone();
        self.next += 1;
        Some((self.next - 1, symbol))
    }

    /// A source symbol, if it is known and not forgotten yet. One that was restored need not wait
    /// for those before it, as [`pop`](Self::pop) does.
    pub fn get(&self, id: u32) -> Option<Bytes> {
        self.known.get(&id).cloned()
    }

    /// Gives up waiting for source symbols before number `next`: [`pop`](Self::pop) goes on from
    /// there. They may still be of use to restore later ones.
    pub fn skip(&mut self, next: u32) {
        self.next = self.next.max(next.min(self.end));
    }

    /// The source symbol that [`pop`](Self::pop) waits for: all before it may be acknowledged.
    pub const fn waits_for(&self) -> u32 {
        self.next
    }

    /// Begins anew with source symbol `next`, as after a gap that no repair symbol reaches across.
    pub fn restart(&mut self, next: u32) {
        (self.next, self.end) = (next, next);
        self.known.clear();
        self.rows.clear();
    }

    /// How many more repair symbols would restore all that is missing so far.
    pub fn needed(&self) -> u32 {
        let missing = (self.oldest()..self.end).filter(|id| !self.known.contains_key(id)).count();
        missing.saturating_sub(self.rows.len()) as u32
    }

    fn check_length(&self, symbol: &[u8]) -> Result<(), WindowError> {
        let (got, expected) = (symbol.len(), self.symbol_size);
        if got == expected { Ok(()) } else { Err(WindowError::Length { got, expected }) }
    }

    /// What lies further back than two windows is forgotten.
    fn oldest(&self) -> u32 {
        self.end.saturating_sub(2 * self.code.window())
    }

    /// Notes that there is a source symbol `id`.
    fn advance(&mut self, id: u32) -> Result<(), WindowError> {
        if id == u32::MAX || id - id.min(self.end) > self.code.window() {
            return Err(WindowError::Ahead(id));
        }
        if id >= self.end {
            self.end = id + 1;
            let oldest = self.oldest();
            // What was not delivered in time is kept for its reader, within a window more.
            let keep = oldest.min(self.next).max(oldest.saturating_sub(self.code.window()));
            self.next = self.next.max(keep);
            self.known = self.known.split_off(&keep);
            self.rows = self.rows.split_off(&oldest);
        }
        Ok(())
    }

    /// Reduces an equation by those that are there, and takes it if anything is left; true if it
    /// was.
    fn insert(&mut self, mut row: Row) -> bool {
        for (pivot, other) in &self.rows {
            let factor = row.factor(*pivot);
            if factor != 0 {
                row.add(self.level, other, factor);
            }
        }
        let Some(pivot) = row.normalise(self.level) else { return false };
        // No other equation keeps the new pivot.
        for other in self.rows.values_mut() {
            let factor = other.factor(pivot);
            if factor != 0 {
                other.add(self.level, &row, factor);
            }
        }
        self.rows.insert(pivot, row);
        true
    }

    /// Makes known what equations of one unknown say.
    fn harvest(&mut self) {
        let is_solved = |row: &Row| row.factors.iter().filter(|factor| **factor != 0).count() == 1;
        while let Some(id) = self.rows.iter().find(|(_, row)| is_solved(row)).map(|(id, _)| *id) {
            let Some(row) = self.rows.remove(&id) else { return };
            self.learn(id, Bytes::from(row.data));
        }
    }

    /// Takes a source symbol out of all equations.
    fn learn(&mut self, id: u32, symbol: Bytes) {
        let own = self.rows.remove(&id);
        let value = Row { first: id, factors: vec![1], data: symbol.to_vec() };
        for row in self.rows.values_mut() {
            let factor = row.factor(id);
            if factor != 0 {
                row.add(self.level, &value, factor);
            }
        }
        self.known.insert(id, symbol);
        if let Some(mut own) = own {
            // It was solved for this symbol: what is left of it is solved for another.
            own.add(self.level, &value, 1);
            self.insert(own);
        }
    }
}

impl Row {
    fn factor(&self, id: u32) -> u8 {
        let index = id.checked_sub(self.first).map(|index| index as usize);
        index.and_then(|index| self.factors.get(index)).copied().unwrap_or(0)
    }

    /// Adds `factor` times another equation.
    fn add(&mut self, level: Level, other: &Self, factor: u8) {
        let start = self.first.min(other.first);
        let end = (self.first as usize + self.factors.len())
            .max(other.first as usize + other.factors.len());
        let mut factors = vec![0; end - start as usize];
        factors[(self.first - start) as usize..][..self.factors.len()]
            .copy_from_slice(&self.factors);
        let place = &mut factors[(other.first - start) as usize..][..other.factors.len()];
        add_multiple(place, &other.factors, factor);
        add_multiple_of_symbol(level, &mut self.data, &other.data, factor);
        (self.first, self.factors) = (start, factors);
        self.trim();
    }

    /// Drops zeros at both ends.
    fn trim(&mut self) {
        let end = self.factors.iter().rposition(|factor| *factor != 0).map_or(0, |index| index + 1);
        self.factors.truncate(end);
        let start = self.factors.iter().position(|factor| *factor != 0).unwrap_or(0);
        self.factors.drain(..start);
        self.first += start as u32;
    }

    /// Makes the first factor one; yields its unknown, or `None` if nothing is unknown.
    fn normalise(&mut self, level: Level) -> Option<u32> {
        self.trim();
        let scale = inverse(*self.factors.first()?);
        let scaled = |bytes: &[u8]| {
            let mut result = vec![0; bytes.len()];
            add_multiple_of_symbol(level, &mut result, bytes, scale);
            result
        };
        self.factors = scaled(&self.factors);
        self.data = scaled(&self.data);
        Some(self.first)
    }
}
