//! What docs/safety.md found stands in the help of the settings that cause it.

use std::collections::BTreeMap;

use fontis_sim::scenario::Language;

/// Cells in which a column drops more than a fiftieth, and more than CUBIC: the column, and both
/// shares.
fn broken_cells(page: &'static str) -> Vec<(&'static str, &'static str, &'static str)> {
    let (mut names, mut of_cubic, mut broken) = (Vec::new(), BTreeMap::new(), Vec::new());
    for line in page.lines().filter(|line| line.starts_with('#') || line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let drops = |cell: &'static str| cell.split(',').next().expect("a share");
        match cells[0] {
            "cell" => names = cells,
            title if title.starts_with('#') => of_cubic.clear(),
            row => {
                for (name, cell) in names.iter().zip(&cells).skip(1) {
                    if *name == "cubic" {
                        of_cubic.insert(row, drops(cell));
                    }
                    let Some(cubic) = of_cubic.get(row) else { continue };
                    let number = |text: &str| text.parse::<f64>().expect("a share");
                    let (own, theirs) = (number(drops(cell)), number(cubic));
                    if own > 0.02 && own > theirs {
                        broken.push((*name, drops(cell), *cubic));
                    }
                }
            }
        }
    }
    broken
}

#[test]
fn the_help_of_each_setting_tells_the_worst_row_of_the_page_on_safety_that_it_breaks() {
    let page = include_str!("../../../docs/safety.md");
    let broken = broken_cells(page);
    let language = Language::standard();
    for (column, key, is_default) in [
        ("sctp", "sctp.congestion", true),
        ("sctp-code", "sctp.code", false),
        ("sctp-adaptive", "sctp.code", false),
        ("sctp-published", "sctp.repaired_loss", false),
        ("sctp-marks", "sctp.only_marks", false),
        ("ccid2", "dccp.ccid", false),
        ("ccid3", "dccp.ccid", true),
        ("ccid4", "dccp.ccid", false),
        ("ccid4-n", "dccp.ccid", false),
        ("ccid4-n100", "dccp.ccid", false),
        ("cast-auto", "cast.rate", false),
        ("hybla", "flow.protocol", false),
    ] {
        assert!(page.contains(&format!("| {column} |")), "the page has no column {column}");
        let help = language.explain(key).expect("a key");
        let mut cells = broken.iter().filter(|(name, ..)| *name == column).collect::<Vec<_>>();
        cells.sort_by_key(|(_, own, _)| *own);
        assert_eq!(help.contains("docs/safety.md"), !cells.is_empty(), "{column}: {help}");
        let Some((_, own, cubic)) = cells.last() else { continue };
        assert!(help.contains(own) && help.contains(cubic), "{own}, CUBIC {cubic}: {help}");
        // What SCTP does by itself is a hair above CUBIC, as TCP with the same control is.
        assert!(!is_default || *own < "0.025", "{column} is the default, and drops {own}");
    }
}
