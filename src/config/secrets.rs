//! The secrets of connections: what the variables `ORDERS_SECRET_*` hold. A connection stores the name of its variable,
//! never the secret itself.

use std::collections::BTreeMap;
use std::fmt;

use super::SECRET_PREFIX;

/// The variables `ORDERS_SECRET_*` as they were at the start. `Debug` shows their names and not their values.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(BTreeMap<String, String>);

impl Secrets {
    pub(super) fn among(variables: &BTreeMap<String, String>) -> Secrets {
        variables.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The secret in the variable `name`; `None` where it is not set or `name` lacks the prefix.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

/// Takes of these variables those that bear the prefix.
impl FromIterator<(String, String)> for Secrets {
    fn from_iter<V: IntoIterator<Item = (String, String)>>(variables: V) -> Secrets {
        Secrets(variables.into_iter().filter(|(name, _)| name.starts_with(SECRET_PREFIX)).collect())
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.keys().map(|name| (name, "***"))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::Secrets;

    #[test]
    fn only_variables_with_the_prefix_can_be_had_and_none_is_shown() {
        let variables = [("ORDERS_SECRET_TRYTON", "hunter2"), ("AWS_SECRET_KEY", "hunter3")];
        let secrets = Secrets::among(&variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
        assert_eq!(secrets.get("ORDERS_SECRET_TRYTON"), Some("hunter2"));
        assert_eq!(secrets.get("AWS_SECRET_KEY"), None);
        assert_eq!(format!("{secrets:?}"), r#"{"ORDERS_SECRET_TRYTON": "***"}"#);
    }
}
