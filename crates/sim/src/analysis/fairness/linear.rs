/// Solves `matrix · x = side` for a symmetric matrix, given by rows, that has no negative
/// eigenvalue (Cholesky). An unknown that the others determine but for rounding is zero.
pub(super) fn solve_symmetric(mut matrix: Vec<f64>, side: &[f64]) -> Vec<f64> {
    /// Of the diagonal, what rounding may leave of it.
    const ROUNDING: f64 = 1e-14;
    let n = side.len();
    for row in 0..n {
        for column in 0..=row {
            let (above, below) = matrix.split_at_mut(row * n);
            let other =
                if row == column { &below[..column] } else { &above[column * n..][..column] };
            let dot: f64 = below[..column].iter().zip(other).map(|(a, b)| a * b).sum();
            let value = below[column];
            let rest = value - dot;
            below[column] = if row > column {
                rest / above[column * n + column]
            } else if rest > ROUNDING * value {
                libm::sqrt(rest)
            } else {
                f64::INFINITY
            };
        }
    }
    let mut x = side.to_vec();
    for row in 0..n {
        let dot: f64 = (0..row).map(|k| matrix[row * n + k] * x[k]).sum();
        x[row] = (x[row] - dot) / matrix[row * n + row];
    }
    for row in (0..n).rev() {
        let dot: f64 = (row + 1..n).map(|k| matrix[k * n + row] * x[k]).sum();
        x[row] = (x[row] - dot) / matrix[row * n + row];
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_regular_and_a_singular_system_are_solved() {
        assert_eq!(solve_symmetric(vec![4.0, 2.0, 2.0, 5.0], &[8.0, 8.0]), [1.5, 1.0]);
        assert_eq!(solve_symmetric(vec![1.0, 1.0, 1.0, 1.0], &[3.0, 3.0]), [3.0, 0.0]);
    }
}
