//! The conic solver clarabel beside ours.

use std::cell::Cell;

use clarabel::algebra::CscMatrix;
use clarabel::solver::SupportedConeT::{
    ExponentialConeT, NonnegativeConeT, PowerConeT, SecondOrderConeT,
};
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, SolverStatus, SupportedConeT};
use fontis_sim::analysis::fairness::{Notion, User, network};
use fontis_sim::analysis::share::{Demand, max_min_network};

use super::random::{Network, each_seed};

/// Rows `b − A·z` that lie in cones.
#[derive(Default)]
struct Program {
    cost: Vec<f64>,
    entries: (Vec<usize>, Vec<usize>, Vec<f64>),
    sides: Vec<f64>,
    cones: Vec<SupportedConeT<f64>>,
}

impl Program {
    /// A row with this constant and these coefficients.
    fn row(&mut self, constant: f64, of: &[(usize, f64)]) {
        for (variable, coefficient) in of {
            self.entries.0.push(self.sides.len());
            self.entries.1.push(*variable);
            self.entries.2.push(-coefficient);
        }
        self.sides.push(constant);
    }

    fn solve(self) -> (Vec<f64>, SolverStatus) {
        let (rows, columns) = (self.sides.len(), self.cost.len());
        let (i, j, v) = self.entries;
        let matrix = CscMatrix::new_from_triplets(rows, columns, i, j, v);
        let quadratic = CscMatrix::zeros((columns, columns));
        let settings = DefaultSettings {
            verbose: false,
            tol_gap_abs: 1e-11,
            tol_gap_rel: 1e-11,
            tol_feas: 1e-11,
            ..DefaultSettings::default()
        };
        let mut solver =
            DefaultSolver::new(&quadratic, &self.cost, &matrix, &self.sides, &self.cones, settings)
                .expect("a program");
        solver.solve();
        (solver.solution.x.clone(), solver.solution.status)
    }
}

/// Limits of nodes and users, on the first variables.
fn limits(of: &Network, program: &mut Program) {
    for (node, capacity) in of.capacities.iter().enumerate() {
        let crossing = (0..of.users.len()).filter(|user| of.routes[*user].contains(&node));
        program.row(*capacity, &crossing.map(|user| (user, -1.0)).collect::<Vec<_>>());
    }
    for (at, user) in of.users.iter().enumerate() {
        program.row(0.0, &[(at, 1.0)]);
        if user.cap.is_finite() {
            program.row(user.cap, &[(at, -1.0)]);
        }
    }
    program.cones.push(NonnegativeConeT(program.sides.len()));
}

/// The shares that maximise the sum of utilities, where variable n + i bounds the utility of i.
fn alpha_fair(of: &Network) -> (Vec<f64>, SolverStatus) {
    let (n, alpha) = (of.users.len(), of.alpha);
    let mut program = Program { cost: vec![0.0; 2 * n], ..Program::default() };
    limits(of, &mut program);
    for (at, user) in of.users.iter().enumerate() {
        let (share, utility) = (&[(at, 1.0)], &[(n + at, 1.0)]);
        let factor = if alpha == 1.0 { -1.0 } else { -1.0 / (1.0 - alpha) };
        program.cost[n + at] = factor * user.weight;
        if alpha == 1.0 {
            // e^u ≤ x
            program.row(0.0, utility);
            program.row(1.0, &[]);
            program.row(0.0, share);
            program.cones.push(ExponentialConeT());
        } else if alpha == 2.0 {
            // u·x ≥ 1
            program.row(0.0, &[(n + at, 1.0), (at, 1.0)]);
            program.row(0.0, &[(n + at, 1.0), (at, -1.0)]);
            program.row(2.0, &[]);
            program.cones.push(SecondOrderConeT(3));
        } else if alpha < 1.0 {
            // u ≤ x^(1−α)
            program.row(0.0, share);
            program.row(1.0, &[]);
            program.row(0.0, utility);
            program.cones.push(PowerConeT(1.0 - alpha));
        } else {
            // u ≥ x^(1−α), or u^(1/α) · x^(1−1/α) ≥ 1
            program.row(0.0, utility);
            program.row(0.0, share);
            program.row(1.0, &[]);
            program.cones.push(PowerConeT(1.0 / alpha));
        }
    }
    let (mut shares, status) = program.solve();
    shares.truncate(n);
    (shares, status)
}

/// The sum of utilities.
fn worth(of: &Network, shares: &[f64]) -> f64 {
    let utility = |(user, share): (&User, &f64)| {
        if of.alpha == 1.0 {
            user.weight * share.max(0.0).ln()
        } else {
            user.weight * share.max(0.0).powf(1.0 - of.alpha) / (1.0 - of.alpha)
        }
    };
    of.users.iter().zip(shares).map(utility).sum()
}

/// What it costs at least to be this far from the optimum, where utilities curve as they do at the
/// larger of both shares: half of U''·Δ² of each user.
fn cost(of: &Network, ours: &[f64], theirs: &[f64]) -> f64 {
    let users = of.users.iter().zip(ours.iter().zip(theirs));
    let one = |(user, (a, b)): (&User, (&f64, &f64))| {
        0.5 * of.alpha * user.weight * (a - b).powi(2) / a.max(*b).powf(of.alpha + 1.0)
    };
    users.map(one).sum()
}

#[test]
fn the_sum_of_utilities_is_that_of_a_conic_solver() {
    let worst = Cell::new([0.0f64; 3]);
    let (solved, others) = (Cell::new(0), Cell::new(0));
    each_seed("oracle", |seed, s| {
        let mut of = Network::random(s);
        // Beyond, the solver's cones are too flat for it to come to an end.
        of.alpha = of.alpha.min(4.0);
        let ours = network(&of.capacities, &of.users, &of.routes, of.notion())
            .unwrap_or_else(|error| panic!("seed {seed}: {error} {of:?}"));
        of.assert_feasible(&ours, seed);
        let (theirs, status) = alpha_fair(&of);
        let (mine, other) = (worth(&of, &ours), worth(&of, &theirs));
        let scale = mine.abs().max(1.0);
        let (lack, far) = ((other - mine) / scale, cost(&of, &ours, &theirs) / scale);
        if status != SolverStatus::Solved {
            others.set(others.get() + 1);
            return;
        }
        solved.set(solved.get() + 1);
        let differ = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        let [a, b, c] = worst.get();
        worst.set([a.max(lack), b.max(far), c.max(differ)]);
        assert!(lack < 1e-8, "seed {seed}: α {} lacks {lack:e}", of.alpha);
        assert!(far < 1e-7, "seed {seed}: α {} costs {far:e}", of.alpha);
    });
    let [lack, far, differ] = worst.get();
    println!(
        "{} solved; lack {lack:e}, cost of difference {far:e}, shares {differ:e}",
        solved.get()
    );
    assert!(solved.get() > 0);
}

#[test]
fn nobody_in_a_max_min_network_can_have_more_but_from_somebody_with_less() {
    each_seed("max-min", |seed, s| {
        let of = Network::random(s);
        let shares = network(&of.capacities, &of.users, &of.routes, Notion::MaxMin)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        of.assert_feasible(&shares, seed);
        let loads = of.loads(&shares);
        for (at, user) in of.users.iter().enumerate() {
            // A full node on the way, on which nobody has more.
            let is_bottleneck = |node: &usize| {
                let mut others = (0..shares.len()).filter(|other| of.routes[*other].contains(node));
                loads[*node] > of.capacities[*node] * (1.0 - 1e-9)
                    && others.all(|other| shares[other] <= shares[at] * (1.0 + 1e-9))
            };
            let has_all = shares[at] == user.cap;
            assert!(has_all || of.routes[at].iter().any(is_bottleneck), "seed {seed}: {at}");
        }
        let demands: Vec<Demand> = of
            .users
            .iter()
            .zip(&of.routes)
            .map(|(user, links)| Demand { limit: user.cap, links: links.clone() })
            .collect();
        let naive = max_min_network(&of.capacities, &demands);
        let differ = shares.iter().zip(&naive).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(differ < 1e-9, "seed {seed}: {differ:e}");
        // The least share that can be given to all who can use it, by linear programming.
        let mut program = Program { cost: vec![0.0; shares.len() + 1], ..Program::default() };
        limits(&of, &mut program);
        let level = shares.len();
        program.cost[level] = -1.0;
        let before = program.sides.len();
        (0..level).for_each(|at| program.row(0.0, &[(at, 1.0), (level, -1.0)]));
        program.cones.push(NonnegativeConeT(program.sides.len() - before));
        let (solution, status) = program.solve();
        let ours = shares.iter().copied().fold(f64::INFINITY, f64::min);
        let differ = (solution[level] - ours).abs();
        assert!(differ < 1e-7, "seed {seed}: {status:?} {} {ours}", solution[level]);
    });
}
