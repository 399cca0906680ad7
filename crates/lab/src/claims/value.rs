/// The value of an expression: a number, or a list of them. True is 1, false 0.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Number(f64),
    List(Vec<f64>),
    Text(String),
}

impl Value {
    /// The number itself, or the one element of a list.
    pub(super) fn number(&self) -> Result<f64, String> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::List(list) if list.len() == 1 => Ok(list[0]),
            Self::List(list) => Err(format!("{} values where one is wanted", list.len())),
            Self::Text(text) => Err(format!("{text:?} where a number is wanted")),
        }
    }

    pub(super) fn list(&self) -> Result<Vec<f64>, String> {
        match self {
            Self::Number(number) => Ok(vec![*number]),
            Self::List(list) => Ok(list.clone()),
            Self::Text(text) => Err(format!("{text:?} where numbers are wanted")),
        }
    }

    pub(super) fn text(&self) -> Result<&str, String> {
        match self {
            Self::Text(text) => Ok(text),
            _ => Err("a number where a text is wanted".to_owned()),
        }
    }

    pub(super) fn truth(truth: bool) -> Self {
        Self::Number(f64::from(u8::from(truth)))
    }

    /// Applies an operation to two numbers, to each of a list and a number, or to two lists of
    /// equal length.
    pub(super) fn zip(&self, other: &Self, of: impl Fn(f64, f64) -> f64) -> Result<Self, String> {
        Ok(match (self, other) {
            (Self::Number(a), Self::Number(b)) => Self::Number(of(*a, *b)),
            (Self::List(list), Self::Number(b)) => {
                Self::List(list.iter().map(|a| of(*a, *b)).collect())
            }
            (Self::Number(a), Self::List(list)) => {
                Self::List(list.iter().map(|b| of(*a, *b)).collect())
            }
            (Self::List(a), Self::List(b)) if a.len() == b.len() => {
                Self::List(a.iter().zip(b).map(|(a, b)| of(*a, *b)).collect())
            }
            (Self::List(a), Self::List(b)) if a.len() == 1 => {
                Self::List(b.iter().map(|b| of(a[0], *b)).collect())
            }
            (Self::List(a), Self::List(b)) if b.len() == 1 => {
                Self::List(a.iter().map(|a| of(*a, b[0])).collect())
            }
            (Self::List(a), Self::List(b)) => {
                return Err(format!("lists of {} and {} values", a.len(), b.len()));
            }
            _ => return Err("a text in a computation".to_owned()),
        })
    }
}
