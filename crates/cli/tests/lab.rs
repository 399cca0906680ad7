//! Subcommands that are written in Python: they run where the package is, and say how to get it
//! where it is not.

use std::process::{Command, Output};

fn fontis(python: &str, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fontis"));
    command.args(args).env("FONTIS_PYTHON", python).output().expect("it runs")
}

#[test]
fn what_needs_python_says_how_to_install_it_where_it_is_missing() {
    for name in ["sweep", "figure", "report"] {
        // One that is not there, and one that has no such package.
        for python in ["/no/such/python", "false"] {
            let output = fontis(python, &["lab", name, "--help"]);
            assert_eq!(output.status.code(), Some(1));
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(
                error.contains(&format!("fontis lab {name} is part of the Python package fontis"))
                    && error.contains("pip install '.[lab]'")
                    && error.contains(python),
                "{error}"
            );
            assert_eq!(error.trim().lines().count(), 1, "{error}");
        }
    }
}

#[cfg(unix)]
#[test]
fn what_needs_python_gets_all_arguments_and_its_exit_code_is_passed_on() {
    use std::os::unix::fs::PermissionsExt;
    let here = tempfile::TempDir::new().expect("a folder");
    let python = here.path().join("python");
    let script = "#!/bin/sh\n[ \"$1\" = -c ] && exit 0\necho \"$@\"\nexit 7\n";
    std::fs::write(&python, script).expect("written");
    std::fs::set_permissions(&python, PermissionsExt::from_mode(0o755)).expect("executable");
    let python = python.to_str().expect("a name");
    let output = fontis(python, &["lab", "sweep", "a b.toml", "--grid", "topology.rtt=1ms", "-h"]);
    assert_eq!(output.status.code(), Some(7));
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.trim(), "-m fontis.lab sweep a b.toml --grid topology.rtt=1ms -h");
}
