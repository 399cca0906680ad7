//! Tables for people.

use crate::text;

/// Rows of cells, in columns as wide as their widest cell; the first is flush left.
pub(super) fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cell = |(at, cell): (usize, &String)| match at {
            0 => format!("{cell:<width$}", width = widths[0]),
            _ => format!("  {cell:>width$}", width = widths[at]),
        };
        row.iter().enumerate().map(cell).collect::<String>().trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// A number with three digits behind the point.
pub(super) fn cell(value: f64) -> String {
    text::round(value).to_string()
}
