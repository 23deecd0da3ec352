//! What can be wrong with the settings, each as one line for the operator. No secret is ever part of it.

use super::Setting;

/// A setting that stops the start. Its text is one line: it names the setting, says what is wrong and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSetting {
    /// The value is not allowed.
    #[error("{} is '{shown}': allowed is {}", setting.name, setting.allowed)]
    Value {
        /// The setting.
        setting: Setting,
        /// Its value, escaped, without secrets.
        shown: String,
    },
    /// No setting has this name.
    #[error("{name} is not a setting of this service: the nearest is {nearest}, and .env.example lists them all")]
    Unknown {
        /// The name that was met, escaped.
        name: String,
        /// The most similar name that is known.
        nearest: &'static str,
    },
    /// The value is not text.
    #[error("{name} is not valid UTF-8: allowed is text")]
    NotText {
        /// The name of the variable.
        name: String,
    },
    /// The file `.env` cannot be used.
    #[error(".env {problem}: allowed is a readable file with one NAME=value a line, '#' before comments")]
    DotEnv {
        /// What is wrong with the file. A line of it is not shown, because it may hold a secret.
        problem: String,
    },
}
