//! Tables of columns.

use core::fmt;
use core::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// A table of a recording: named columns of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    schema: &'static [ColumnSchema],
    columns: Vec<Column>,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnSchema {
    /// Its name.
    pub name: &'static str,
    /// The unit of its values, or empty.
    pub unit: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What its values are.
    pub kind: ColumnKind,
}

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Whole numbers.
    Integer,
    /// Numbers; NaN where there is none.
    Real,
    /// Texts.
    Text,
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Whole numbers.
    Integer(Vec<u64>),
    /// Numbers.
    Real(Vec<f64>),
    /// Texts.
    Text(Texts),
}

/// Texts, each different one kept once: columns of names repeat few of them in millions of rows.
#[derive(Clone, Default)]
pub struct Texts {
    /// For each row, the place of its text in `values`.
    keys: Vec<u32>,
    values: Vec<Box<str>>,
    /// The places of the texts in `values`, found by their hashes: a map would keep every text a
    /// second time.
    places: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

/// As they read: where they are found is of no interest, and another in each process.
impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Texts are equal if they read the same.
impl PartialEq for Texts {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Texts {
    fn push(&mut self, text: &str) {
        let last = self.keys.last().copied();
        // Rows of the same, or the same names in the same order again and again.
        let near = [last, last.map(|key| key + 1)].into_iter().flatten();
        let mut near =
            near.filter(|key| self.values.get(*key as usize).is_some_and(|v| **v == *text));
        let key = near.next().unwrap_or_else(|| self.place(text));
        self.keys.push(key);
    }

    /// The place of a text, which it is given if it has none.
    fn place(&mut self, text: &str) -> u32 {
        let Self { values, places, hasher, .. } = self;
        let entry = places.entry(
            hasher.hash_one(text),
            |key| *values[*key as usize] == *text,
            |key| hasher.hash_one(&*values[*key as usize]),
        );
        *entry
            .or_insert_with(|| {
                values.push(text.into());
                u32::try_from(values.len() - 1).expect("fewer different texts than rows")
            })
            .get()
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The text of a row, if there is such a row.
    pub fn get(&self, row: usize) -> Option<&str> {
        self.keys.get(row).map(|key| &*self.values[*key as usize])
    }

    /// The text of each row.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.keys.iter().map(|key| &*self.values[*key as usize])
    }

    /// The different texts, in the order in which they first came.
    pub fn different(&self) -> &[Box<str>] {
        &self.values
    }

    /// For each row the place of its text among the different ones, and those.
    pub fn into_parts(self) -> (Vec<u32>, Vec<Box<str>>) {
        (self.keys, self.values)
    }
}

/// A value in a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell<'a> {
    /// A whole number.
    Integer(u64),
    /// A number.
    Real(f64),
    /// A text.
    Text(&'a str),
}

impl From<u64> for Cell<'_> {
    fn from(value: u64) -> Self {
        Self::Integer(value)
    }
}

impl From<f64> for Cell<'_> {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(value)
    }
}

impl Table {
    /// A table without rows.
    pub fn new(schema: &'static [ColumnSchema]) -> Self {
        let columns = schema.iter().map(|column| match column.kind {
            ColumnKind::Integer => Column::Integer(Vec::new()),
            ColumnKind::Real => Column::Real(Vec::new()),
            ColumnKind::Text => Column::Text(Texts::default()),
        });
        Self { schema, columns: columns.collect() }
    }

    /// Makes room for so many rows more.
    pub(crate) fn reserve(&mut self, rows: usize) {
        for column in &mut self.columns {
            match column {
                Column::Integer(values) => values.reserve_exact(rows),
                Column::Real(values) => values.reserve_exact(rows),
                Column::Text(values) => values.keys.reserve_exact(rows),
            }
        }
    }

    /// Appends a row.
    ///
    /// # Panics
    /// If its cells are not of the kinds that the schema says.
    pub fn push<const N: usize>(&mut self, row: [Cell<'_>; N]) {
        assert_eq!(N, self.columns.len(), "a row has a cell for each column");
        for (column, cell) in self.columns.iter_mut().zip(row) {
            match (column, cell) {
                (Column::Integer(values), Cell::Integer(value)) => values.push(value),
                (Column::Real(values), Cell::Real(value)) => values.push(value),
                (Column::Text(values), Cell::Text(value)) => values.push(value),
                (column, cell) => panic!("{cell:?} is not for {column:?}"),
            }
        }
    }

    /// What its columns hold.
    pub const fn schema(&self) -> &'static [ColumnSchema] {
        self.schema
    }

    /// The values of its columns, in the order of the schema.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The values of its columns, to keep.
    pub fn into_columns(self) -> Vec<Column> {
        self.columns
    }

    /// How many rows it has.
    pub fn len(&self) -> usize {
        match self.columns.first() {
            Some(Column::Integer(values)) => values.len(),
            Some(Column::Real(values)) => values.len(),
            Some(Column::Text(values)) => values.len(),
            None => 0,
        }
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A column of numbers, whole or not; empty if there is none of this name.
    pub fn numbers(&self, name: &str) -> Vec<f64> {
        match self.column(name) {
            Some(Column::Integer(values)) => values.iter().map(|value| *value as f64).collect(),
            Some(Column::Real(values)) => values.clone(),
            _ => Vec::new(),
        }
    }

    /// A column of texts, if there is one of this name.
    pub fn texts(&self, name: &str) -> Option<&Texts> {
        match self.column(name) {
            Some(Column::Text(values)) => Some(values),
            _ => None,
        }
    }

    fn column(&self, name: &str) -> Option<&Column> {
        let index = self.schema.iter().position(|column| column.name == name)?;
        self.columns.get(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_kept_once_and_read_as_they_were_written() {
        let mut texts = Texts::default();
        for text in ["a", "a", "b", "a", ""] {
            texts.push(text);
        }
        assert_eq!(texts.iter().collect::<Vec<_>>(), ["a", "a", "b", "a", ""]);
        assert_eq!((texts.get(2), texts.get(5)), (Some("b"), None));
        assert_eq!(
            texts.into_parts(),
            (vec![0, 0, 1, 0, 2], ["a", "b", ""].map(Box::from).to_vec())
        );
    }

    #[test]
    fn thousands_of_texts_have_each_a_place_of_its_own() {
        let mut texts = Texts::default();
        for _ in 0..2 {
            (0..5000).for_each(|n| texts.push(&format!("flow.{n}")));
        }
        (0..5000).rev().for_each(|n| texts.push(&format!("flow.{n}")));
        let want = (0..5000).chain(0..5000).chain((0..5000).rev()).map(|n| format!("flow.{n}"));
        assert!(texts.iter().eq(want));
        assert_eq!(texts.different().len(), 5000);
    }
}
