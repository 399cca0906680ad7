//! The expressions of bindings: numbers, lists, measured values, functions.
//!
//! ```text
//! mean([X07 | cubic, rtt=100 ms | goodput all]) / 200 < 1.25 and increasing({1, 2, 3}, 0)
//! ```
//! `[SCENARIO | SELECTORS | METRIC SUBJECT]` is the list of what was measured, run by run: a
//! selector is a variant, or `KEY=VALUE` of the sweep, where the key may be its last part;
//! repetitions are averaged. `*` as subject is all of them, `a*` those that begin with a.
//! `SCENARIO@testbed` is the scenario with real kernels and sockets.

use super::value::Value;

/// A reading of text as an expression, which gives its value at once.
pub(super) struct Reader<'a, W> {
    rest: &'a str,
    /// The source of measured values and functions.
    world: &'a mut W,
}

/// The source of measured values and functions.
pub(super) trait World {
    /// The values of a metric in the runs of a scenario that the selectors choose.
    fn measured(
        &mut self,
        scenario: &str,
        selectors: &[(Option<String>, String)],
        metric: &str,
        subject: &str,
    ) -> Result<Vec<f64>, String>;
    /// The value of a function.
    fn call(&mut self, name: &str, arguments: &[Value]) -> Result<Value, String>;
}

/// The value of an expression.
pub(super) fn evaluate<W: World>(text: &str, world: &mut W) -> Result<Value, String> {
    let mut reader = Reader { rest: text, world };
    let value = reader.either()?;
    reader.skip();
    if reader.rest.is_empty() { Ok(value) } else { Err(format!("{:?} is too much", reader.rest)) }
}

impl<W: World> Reader<'_, W> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, token: &str) -> bool {
        self.skip();
        let Some(rest) = self.rest.strip_prefix(token) else { return false };
        // A word ends where no letter follows.
        let is_word = token.chars().all(char::is_alphabetic);
        if is_word && rest.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
            return false;
        }
        self.rest = rest;
        true
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.take(token) {
            Ok(())
        } else {
            Err(format!("{token:?} is missing before {:?}", self.rest))
        }
    }

    fn until(&mut self, end: char) -> Result<String, String> {
        let at = self.rest.find(end).ok_or_else(|| format!("{end:?} is missing"))?;
        let text = self.rest[..at].trim().to_owned();
        self.rest = &self.rest[at + end.len_utf8()..];
        Ok(text)
    }

    fn either(&mut self) -> Result<Value, String> {
        let mut value = self.both()?;
        while self.take("or") {
            let right = self.both()?;
            value = Value::truth(value.number()? != 0.0 || right.number()? != 0.0);
        }
        Ok(value)
    }

    fn both(&mut self) -> Result<Value, String> {
        let mut value = self.comparison()?;
        while self.take("and") {
            let right = self.comparison()?;
            value = Value::truth(value.number()? != 0.0 && right.number()? != 0.0);
        }
        Ok(value)
    }

    fn comparison(&mut self) -> Result<Value, String> {
        let left = self.sum()?;
        type Compare = fn(f64, f64) -> bool;
        let operators: [(&str, Compare); 5] = [
            ("<=", |a, b| a <= b),
            (">=", |a, b| a >= b),
            ("==", |a, b| a == b),
            ("<", |a, b| a < b),
            (">", |a, b| a > b),
        ];
        for (token, compare) in operators {
            if self.take(token) {
                let right = self.sum()?;
                return left.zip(&right, |a, b| f64::from(u8::from(compare(a, b))));
            }
        }
        Ok(left)
    }

    fn sum(&mut self) -> Result<Value, String> {
        let mut value = self.product()?;
        loop {
            if self.take("+") {
                value = value.zip(&self.product()?, |a, b| a + b)?;
            } else if self.take("-") {
                value = value.zip(&self.product()?, |a, b| a - b)?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<Value, String> {
        let mut value = self.atom()?;
        loop {
            if self.take("*") {
                value = value.zip(&self.atom()?, |a, b| a * b)?;
            } else if self.take("/") {
                value = value.zip(&self.atom()?, |a, b| a / b)?;
            } else {
                return Ok(value);
            }
        }
    }

    fn atom(&mut self) -> Result<Value, String> {
        self.skip();
        if self.take("-") {
            return self.atom()?.zip(&Value::Number(-1.0), |a, b| a * b);
        }
        if self.take("(") {
            let value = self.either()?;
            self.expect(")")?;
            return Ok(value);
        }
        if self.take("{") {
            return self.arguments("}").and_then(|values| {
                let lists: Result<Vec<Vec<f64>>, String> = values.iter().map(Value::list).collect();
                Ok(Value::List(lists?.concat()))
            });
        }
        if self.take("[") {
            return self.measured();
        }
        if self.take("\"") {
            return self.until('"').map(Value::Text);
        }
        let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '.');
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            // An exponent may have a sign.
            let (word, rest) = match (word.ends_with(['e', 'E']), rest.strip_prefix('-')) {
                (true, Some(after)) => {
                    let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
                    (&self.rest[..word.len() + 1 + digits], &after[digits..])
                }
                _ => (word, rest),
            };
            self.rest = rest;
            return word.parse().map(Value::Number).map_err(|_| format!("{word:?} is no number"));
        }
        if word.is_empty() {
            return Err(format!("a value is missing before {:?}", self.rest));
        }
        self.rest = rest;
        self.expect("(")?;
        let arguments = self.arguments(")")?;
        self.world.call(word, &arguments).map_err(|error| format!("{word}: {error}"))
    }

    fn arguments(&mut self, end: &str) -> Result<Vec<Value>, String> {
        let mut values = Vec::new();
        if self.take(end) {
            return Ok(values);
        }
        loop {
            values.push(self.either()?);
            if self.take(end) {
                return Ok(values);
            }
            self.expect(",")?;
        }
    }

    fn measured(&mut self) -> Result<Value, String> {
        let scenario = self.until('|')?;
        let selectors = self.until('|')?;
        let what = self.until(']')?;
        let selectors: Vec<(Option<String>, String)> = selectors
            .split(',')
            .map(str::trim)
            .filter(|selector| !selector.is_empty())
            .map(|selector| match selector.split_once('=') {
                Some((key, value)) => (Some(key.trim().to_owned()), value.trim().to_owned()),
                None => (None, selector.to_owned()),
            })
            .collect();
        let (metric, subject) = what.split_once(' ').unwrap_or((&*what, "all"));
        let values = self.world.measured(&scenario, &selectors, metric, subject.trim())?;
        if values.is_empty() {
            return Err(format!("no run of {scenario} has {what:?} for these selectors"));
        }
        Ok(Value::List(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;

    impl World for Fixed {
        fn measured(
            &mut self,
            scenario: &str,
            selectors: &[(Option<String>, String)],
            metric: &str,
            subject: &str,
        ) -> Result<Vec<f64>, String> {
            assert_eq!((scenario, metric, subject), ("X07", "goodput", "all"));
            assert_eq!(selectors[1], (Some("rtt".to_owned()), "100 ms".to_owned()));
            Ok(vec![3.0, 5.0])
        }

        fn call(&mut self, name: &str, arguments: &[Value]) -> Result<Value, String> {
            super::super::functions::call(name, arguments)
        }
    }

    fn value(text: &str) -> Result<f64, String> {
        evaluate(text, &mut Fixed)?.number()
    }

    #[test]
    fn expressions_have_the_usual_order_and_lists_are_combined_element_by_element() {
        assert_eq!(value("1 + 2 * 3 - 4 / 2"), Ok(5.0));
        assert_eq!(value("-(1 + 2) * 1e-1 < 0"), Ok(1.0));
        assert_eq!(value("mean([X07 | cubic, rtt=100 ms | goodput all]) / 2"), Ok(2.0));
        assert_eq!(value("all({1, 2} * 2 == {2, 4}) and not(0)"), Ok(1.0));
        assert_eq!(value("0 or max({1, 7, 3}) == 7"), Ok(1.0));
        assert_eq!(evaluate("\"a text\"", &mut Fixed), Ok(Value::Text("a text".to_owned())));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for text in ["1 +", "mean(", "{1, 2", "nothing(1)", "1 2", "{1,2} + {1,2,3}", "[X07 | a"] {
            assert!(value(text).is_err(), "{text}");
        }
    }
}
