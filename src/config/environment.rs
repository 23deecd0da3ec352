//! The variables of the process: the file `.env`, then the environment, which wins.

use std::collections::BTreeMap;
use std::env;
use std::fs::File;

use super::{BadSetting, SECRET_PREFIX, SETTINGS};

/// All variables that concern the service. The file is read into a map and not into the environment, because changing
/// the environment of a running process is not safe when other threads read it.
pub(super) fn variables() -> Result<BTreeMap<String, String>, BadSetting> {
    let mut variables = match dotenvy::dotenv_iter() {
        Ok(lines) => dot_env(lines)?,
        Err(error) if error.not_found() => BTreeMap::new(),
        Err(error) => return Err(unusable(&error)),
    };
    for (name, value) in env::vars_os() {
        let Some(name) = name.to_str().filter(|name| concerns_the_service(name)) else { continue };
        let value = value.into_string().map_err(|_| BadSetting::NotText { name: name.to_owned() })?;
        variables.insert(name.to_owned(), value);
    }
    Ok(variables)
}

fn concerns_the_service(name: &str) -> bool {
    name.starts_with("ORDERS_") || SETTINGS.iter().any(|setting| setting.name == name)
}

fn dot_env(lines: dotenvy::Iter<File>) -> Result<BTreeMap<String, String>, BadSetting> {
    lines.collect::<Result<_, _>>().map_err(|error| unusable(&error))
}

/// The errors of the parser hold the line, which may hold a secret; so only the kind of the error is said.
fn unusable(error: &dotenvy::Error) -> BadSetting {
    let problem = match error {
        dotenvy::Error::Io(error) => format!("cannot be read ({})", error.kind()),
        dotenvy::Error::LineParse(line, _) => match line.split_once('=') {
            Some((name, _)) => format!("has a bad line, the one of {}", name.trim().escape_debug()),
            None => "has a line without '='".to_owned(),
        },
        _ => "cannot be understood".to_owned(),
    };
    BadSetting::DotEnv { problem }
}

/// Refuses a variable that begins with `ORDERS_` and is neither a setting nor a secret: most likely a typing error, and
/// the operator believes that it has an effect.
///
/// # Errors
/// The first unknown name, with the nearest one that is known.
pub fn refuse_unknown<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), BadSetting> {
    for name in names.filter(|name| name.starts_with("ORDERS_") && !name.starts_with(SECRET_PREFIX)) {
        if !SETTINGS.iter().any(|setting| setting.name == name) {
            return Err(BadSetting::Unknown { name: name.escape_debug().to_string(), nearest: nearest(name) });
        }
    }
    Ok(())
}

fn nearest(name: &str) -> &'static str {
    let distance = |known: &&str| strsim::damerau_levenshtein(known, name);
    SETTINGS.iter().map(|setting| setting.name).min_by_key(distance).expect("the table of settings is not empty")
}
