//! The variables of the process: the file `.env`, then the environment, which wins.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::io::Read;

use super::{BadSetting, SECRET_PREFIX, SETTINGS};

/// All variables that concern the service. The file is read into a map and not into the environment, because changing
/// the environment of a running process is not safe when other threads read it.
pub(super) fn variables() -> Result<BTreeMap<String, String>, BadSetting> {
    let from_file = match dotenvy::dotenv_iter() {
        Ok(lines) => parse(lines)?,
        Err(error) if error.not_found() => BTreeMap::new(),
        Err(error) => return Err(unusable(&error)),
    };
    merge(from_file, env::vars_os())
}

/// The variables of the file, and over them those of the environment.
fn merge(
    mut variables: BTreeMap<String, String>,
    environment: impl Iterator<Item = (OsString, OsString)>,
) -> Result<BTreeMap<String, String>, BadSetting> {
    for (name, value) in environment {
        let Some(name) = name.to_str().filter(|name| concerns_the_service(name)) else { continue };
        let value = value.into_string().map_err(|_| BadSetting::NotText { name: name.to_owned() })?;
        variables.insert(name.to_owned(), value);
    }
    Ok(variables)
}

fn concerns_the_service(name: &str) -> bool {
    name.starts_with("ORDERS_") || SETTINGS.iter().any(|setting| setting.name == name)
}

fn parse(lines: dotenvy::Iter<impl Read>) -> Result<BTreeMap<String, String>, BadSetting> {
    lines.collect::<Result<_, _>>().map_err(|error| unusable(&error))
}

/// The errors of the parser hold the line, which may hold a secret or the second line of one. So no more of it is said
/// than a name that is known to be a name.
fn unusable(error: &dotenvy::Error) -> BadSetting {
    let problem = match error {
        dotenvy::Error::Io(error) => format!("cannot be read ({})", error.kind()),
        dotenvy::Error::LineParse(line, _) => match line.split_once('=') {
            Some((name, _)) if concerns_the_service(name.trim()) => {
                format!("has a bad value for {}", name.trim().escape_debug())
            }
            _ => "has a line that is not NAME=value".to_owned(),
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

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use super::{BadSetting, merge, parse};

    fn refusal(file: &str) -> String {
        let bad = parse(dotenvy::from_read_iter(file.as_bytes())).expect_err("this file is not allowed");
        bad.to_string()
    }

    #[test]
    fn the_environment_wins_over_the_file_and_what_concerns_others_is_left_out() {
        let file = "# a comment\nexport ORDERS_BIND='127.0.0.1:1'\nORDERS_SECRET_A=\"a b\"\n";
        let file = parse(dotenvy::from_read_iter(file.as_bytes())).expect("the file is good");
        let environment = [("ORDERS_BIND", "127.0.0.1:2"), ("RUST_LOG", "warn"), ("PATH", "/bin")];
        let environment = environment.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let variables = merge(file, environment.into_iter()).expect("all is text");
        let found: Vec<_> = variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(found, [("ORDERS_BIND", "127.0.0.1:2"), ("ORDERS_SECRET_A", "a b"), ("RUST_LOG", "warn")]);
    }

    #[test]
    fn a_bad_line_is_told_without_what_may_be_a_secret() {
        let line = refusal("ORDERS_SECRET_A='s3cret\n");
        assert!(line.contains("ORDERS_SECRET_A") && !line.contains("s3cret") && !line.contains('\n'), "{line}");
        let line = refusal("ORDERS_SECRET_A=begin\ns3cret half= \"x\n");
        assert!(line.starts_with(".env has a line that is not NAME=value: ") && !line.contains("s3cret"), "{line}");
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_where_they_concern_the_service() {
        let bytes = || OsString::from_vec(vec![0xff]);
        let refused = merge([].into(), [("ORDERS_BIND".into(), bytes())].into_iter());
        assert_eq!(refused, Err(BadSetting::NotText { name: "ORDERS_BIND".to_owned() }));
        assert_eq!(merge([].into(), [("PATH".into(), bytes()), (bytes(), bytes())].into_iter()), Ok([].into()));
    }
}
