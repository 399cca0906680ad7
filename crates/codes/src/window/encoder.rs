use alloc::collections::VecDeque;
use alloc::vec;

use bytes::Bytes;

use super::code::WindowCode;
use super::symbol::{RepairSymbol, WindowError};
use crate::multiples::add_multiple_of_symbol;
use crate::simd::Level;

/// Makes repair symbols over the most recent source symbols.
pub struct WindowEncoder {
    code: WindowCode,
    symbol_size: u16,
    window: VecDeque<Bytes>,
    first: u32,
    repairs: u32,
    level: Level,
}

impl WindowEncoder {
    /// An encoder of source symbols of `symbol_size` bytes. It keeps no more of them than the
    /// code's window.
    pub fn new(code: WindowCode, symbol_size: u16) -> Self {
        let level = Level::detect();
        Self { code, symbol_size, window: VecDeque::new(), first: 0, repairs: 0, level }
    }

    /// Takes the next source symbol; yields its number. Beyond the code's window the oldest goes
    /// out of the sums.
    pub fn add(&mut self, symbol: Bytes) -> Result<u32, WindowError> {
        let expected = usize::from(self.symbol_size);
        if symbol.len() != expected {
            return Err(WindowError::Length { got: symbol.len(), expected });
        }
        let next =
            self.first.checked_add(self.window.len() as u32).ok_or(WindowError::Exhausted)?;
        if self.window.len() as u32 == self.code.window() {
            self.window.pop_front();
            self.first += 1;
        }
        self.window.push_back(symbol);
        Ok(next)
    }

    /// Takes all source symbols before number `next` out of the sums: they have been acknowledged.
    pub fn retire(&mut self, next: u32) {
        while self.first < next && self.window.pop_front().is_some() {
            self.first += 1;
        }
    }

    /// How many repair symbols the code wants now, behind the source symbol that was added last: a
    /// convolutional code n − k at the end of each group, an on-the-fly code as many as its user
    /// likes.
    pub fn due(&self) -> u32 {
        let added = self.first + self.window.len() as u32;
        match self.code {
            WindowCode::Convolutional { n, k, .. }
                if added > 0 && added.is_multiple_of(u32::from(k)) =>
            {
                u32::from(n - k)
            }
            _ => 0,
        }
    }

    /// A repair symbol over the window; `None` if that is empty.
    pub fn repair(&mut self) -> Option<RepairSymbol> {
        let count = self.window.len();
        if count == 0 {
            return None;
        }
        let id = self.repairs;
        self.repairs = self.repairs.wrapping_add(1);
        let mut data = vec![0; usize::from(self.symbol_size)];
        for (factor, symbol) in self.code.coefficients(id, count).into_iter().zip(&self.window) {
            add_multiple_of_symbol(self.level, &mut data, symbol, factor);
        }
        Some(RepairSymbol { first: self.first, count: count as u16, id, data: Bytes::from(data) })
    }
}
