use fontis_base::Rate;

/// The last limits of a connection: for its sending, and for its peer's.
pub(super) type Shares = [Option<Rate>; 2];
