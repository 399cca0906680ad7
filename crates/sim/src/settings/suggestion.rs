//! Suggestions for misspelt names.

/// Of the candidates, the one most like `text`, if any is like it at all.
pub(crate) fn closest(text: &str, candidates: impl Iterator<Item = String>) -> Option<String> {
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(text, &candidate), candidate))
        .min()
        .filter(|(distance, candidate)| *distance <= candidate.len().max(text.len()) / 2)
        .map(|(_, candidate)| candidate)
}
