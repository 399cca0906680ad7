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
    Text(Vec<String>),
}

/// A value in a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A whole number.
    Integer(u64),
    /// A number.
    Real(f64),
    /// A text.
    Text(String),
}

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        Self::Integer(value)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl Table {
    /// A table without rows.
    pub fn new(schema: &'static [ColumnSchema]) -> Self {
        let columns = schema.iter().map(|column| match column.kind {
            ColumnKind::Integer => Column::Integer(Vec::new()),
            ColumnKind::Real => Column::Real(Vec::new()),
            ColumnKind::Text => Column::Text(Vec::new()),
        });
        Self { schema, columns: columns.collect() }
    }

    /// Appends a row.
    ///
    /// # Panics
    /// If its cells are not of the kinds that the schema says.
    pub fn push<const N: usize>(&mut self, row: [Cell; N]) {
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

    /// A column of texts; empty if there is none of this name.
    pub fn texts(&self, name: &str) -> &[String] {
        match self.column(name) {
            Some(Column::Text(values)) => values,
            _ => &[],
        }
    }

    fn column(&self, name: &str) -> Option<&Column> {
        let index = self.schema.iter().position(|column| column.name == name)?;
        self.columns.get(index)
    }
}
