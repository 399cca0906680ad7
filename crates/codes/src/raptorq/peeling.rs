//! Peeling with inactivation (RFC 6330, section 5.4.2.2): the order in which sparse equations give
//! one LT symbol each, in terms of symbols before it and of a few inactive ones.

use alloc::vec;
use alloc::vec::Vec;

use super::parameters::Parameters;
use super::rows::{ColumnSum, Rows};

/// A column that equations give in terms of others.
const PEELED: u16 = u16::MAX;
/// A column whose turn has not come.
const ACTIVE: u16 = u16::MAX - 1;

/// What must be solved densely costs the cube of its number. Symbols as they come leave fewer than
/// 2 P; this bound is for symbols that somebody chose to make work.
pub(crate) const MAX_INACTIVE: usize = 2048;

/// What peeling found.
pub(crate) struct Peeling {
    /// Equation and the column that it gives, in an order in which each needs only those before it
    /// and inactive ones.
    pub(crate) order: Vec<(u32, u16)>,
    /// The inactive columns: the P permanent ones, then those that peeling had to set aside.
    pub(crate) inactive: Vec<u16>,
    /// The equations that gave no column.
    pub(crate) rest: Vec<u32>,
    /// For each column [`PEELED`], or its place in `inactive`.
    place: Vec<u16>,
}

impl Peeling {
    /// `None` if more columns would be inactive than can be solved for in reasonable time.
    pub(crate) fn new(p: &Parameters, rows: &Rows) -> Option<Self> {
        let mut work = Work::new(p, rows);
        loop {
            work.peel();
            let Some(column) = work.choose() else { break };
            if work.inactive.len() == MAX_INACTIVE {
                return None;
            }
            work.place[usize::from(column)] = work.inactive.len() as u16;
            work.inactive.push(column);
            work.remove(column);
        }
        let mut used = vec![false; rows.len()];
        for (row, _) in &work.order {
            used[*row as usize] = true;
        }
        let rest = (0..rows.len() as u32).filter(|row| !used[*row as usize]).collect();
        Some(Self { order: work.order, inactive: work.inactive, rest, place: work.place })
    }

    /// The place of an inactive column among them; `None` for one that was peeled.
    pub(crate) fn place(&self, column: u16) -> Option<usize> {
        let place = self.place[usize::from(column)];
        (place != PEELED).then_some(usize::from(place))
    }
}

struct Work<'a> {
    rows: &'a Rows,
    /// LT columns.
    lt: u16,
    /// How many active columns each equation has, and the exclusive or of them: the last one needs
    /// no search.
    sums: Vec<ColumnSum>,
    /// Equations with each column (none with permanently inactive ones):
    /// `users[starts[c]..starts[c + 1]]`.
    users: Vec<u32>,
    starts: Vec<u32>,
    /// Equations with one active column: each comes to that at most once. From `next` on they are
    /// still to be followed.
    ripple: Vec<u32>,
    next: usize,
    end: usize,
    /// Room for the equations that a column leaves with two.
    pairs: Vec<u32>,
    components: Components,
    order: Vec<(u32, u16)>,
    inactive: Vec<u16>,
    place: Vec<u16>,
}

impl<'a> Work<'a> {
    fn new(p: &Parameters, rows: &'a Rows) -> Self {
        // Permanently inactive columns are counted, too: leaving them out would cost more than the
        // room for them.
        let mut starts = vec![0u32; p.intermediate + 1];
        for column in rows.columns() {
            starts[usize::from(*column) + 1] += 1;
        }
        for column in 0..p.intermediate {
            starts[column + 1] += starts[column];
        }
        let mut ends = starts.clone();
        let mut users = vec![0; rows.columns().len()];
        let mut components = Components::new(p.lt);
        // One more, which is written and never read.
        let (mut ripple, mut end) = (vec![0; rows.len() + 1], 0);
        for row in 0..rows.len() {
            let columns = rows.lt(row);
            for column in columns {
                let end = &mut ends[usize::from(*column)];
                users[*end as usize] = row as u32;
                *end += 1;
            }
            match columns {
                [_] => {
                    ripple[end] = row as u32;
                    end += 1;
                }
                [a, b] => components.join(*a, *b),
                _ => {}
            }
        }
        let sums = rows.sums().to_vec();
        let mut place = vec![ACTIVE; p.intermediate];
        let inactive: Vec<u16> = (p.lt as u16..p.intermediate as u16).collect();
        for (index, column) in inactive.iter().enumerate() {
            place[usize::from(*column)] = index as u16;
        }
        let order = Vec::with_capacity(p.lt);
        Self {
            rows,
            lt: p.lt as u16,
            sums,
            users,
            starts,
            ripple,
            next: 0,
            end,
            pairs: vec![0; rows.len()],
            components,
            order,
            inactive,
            place,
        }
    }

    /// Follows the ripple until it ends.
    fn peel(&mut self) {
        while self.next < self.end {
            let row = self.ripple[self.next];
            self.next += 1;
            let sum = self.sums[row as usize];
            if sum.count() == 1 {
                let column = sum.last();
                self.place[usize::from(column)] = PEELED;
                self.order.push((row, column));
                self.remove(column);
            }
        }
    }

    /// Takes a column out of the equations that have it.
    fn remove(&mut self, column: u16) {
        let c = usize::from(column);
        let users = &self.users[self.starts[c] as usize..self.starts[c + 1] as usize];
        // Lists that grow without a branch, for none could be predicted.
        let (ones, mut end) = (&mut self.ripple, self.end);
        let (pairs, mut count) = (&mut self.pairs[..users.len()], 0);
        for row in users {
            let left = self.sums[*row as usize].remove(column);
            ones[end] = *row;
            end += usize::from(left == 1);
            pairs[count] = *row;
            count += usize::from(left == 2);
        }
        self.end = end;
        for row in &self.pairs[..count] {
            let place = &self.place;
            let first = *self
                .rows
                .lt(*row as usize)
                .iter()
                .find(|c| place[usize::from(**c)] == ACTIVE)
                .expect("two columns are active");
            self.components.join(first, self.sums[*row as usize].last() ^ first);
        }
    }

    /// The column to set aside next: equations of two columns connect columns, and one column of a
    /// component gives all of it, so one of the largest component; if there is none, the column in
    /// most equations.
    fn choose(&mut self) -> Option<u16> {
        let place = &self.place;
        let is_active = |column: u16| place[usize::from(column)] == ACTIVE;
        if let Some(column) = self.components.largest(is_active) {
            return Some(column);
        }
        let users = |column: &u16| {
            let c = usize::from(*column);
            let rows = &self.users[self.starts[c] as usize..self.starts[c + 1] as usize];
            rows.iter().filter(|row| self.sums[**row as usize].count() > 0).count()
        };
        (0..self.lt).filter(|column| is_active(*column)).max_by_key(users)
    }
}

/// Columns that equations of two active columns connect. A component is used up as a whole, so none
/// is ever split.
struct Components {
    parents: Vec<u16>,
    sizes: Vec<u16>,
    /// Roots by the size that they had when they were noted, as lists; most are outdated.
    notes: Vec<(u16, u32)>,
    heads: Vec<u32>,
    largest: usize,
}

/// The end of a list.
const END: u32 = u32::MAX;

impl Components {
    fn new(columns: usize) -> Self {
        Self {
            parents: (0..columns as u16).collect(),
            sizes: vec![1; columns],
            notes: Vec::with_capacity(columns),
            heads: vec![END; columns + 1],
            largest: 0,
        }
    }

    fn root(&mut self, mut column: u16) -> u16 {
        loop {
            let parent = self.parents[usize::from(column)];
            if parent == column {
                return column;
            }
            let grandparent = self.parents[usize::from(parent)];
            self.parents[usize::from(column)] = grandparent;
            column = grandparent;
        }
    }

    fn join(&mut self, a: u16, b: u16) {
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return;
        }
        let (size_a, size_b) = (self.sizes[usize::from(a)], self.sizes[usize::from(b)]);
        let (root, child) = if size_a >= size_b { (a, b) } else { (b, a) };
        self.parents[usize::from(child)] = root;
        let size = size_a + size_b;
        self.sizes[usize::from(root)] = size;
        let size = usize::from(size);
        self.notes.push((root, self.heads[size]));
        self.heads[size] = self.notes.len() as u32 - 1;
        self.largest = self.largest.max(size);
    }

    /// A column of the largest component that is still there.
    fn largest(&mut self, is_active: impl Fn(u16) -> bool) -> Option<u16> {
        while self.largest > 1 {
            let head = self.heads[self.largest];
            if head == END {
                self.largest -= 1;
                continue;
            }
            let (root, next) = self.notes[head as usize];
            let r = usize::from(root);
            let is_root = self.parents[r] == root && usize::from(self.sizes[r]) == self.largest;
            if is_root && is_active(root) {
                return Some(root);
            }
            self.heads[self.largest] = next;
        }
        None
    }
}
