//! What the laboratory needs of the machine.
