/// The platform of runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Platform {
    /// In virtual time.
    #[default]
    Simulator,
    /// With real kernels and sockets, in real time; on Linux.
    Testbed,
}
