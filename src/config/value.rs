//! From the text of a setting to its value. Each parser gives `None` for what is not allowed; the reader makes the
//! message from the table of settings.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use super::{BadSetting, DatabaseUrl, Setting, database, settings};

/// Gives each setting its text (its default where it is not set), and the parser's "no" its message.
pub(super) struct Reader<F>(F);

impl<F: Fn(&str) -> Option<String>> Reader<F> {
    pub(super) fn new(lookup: F) -> Reader<F> {
        Reader(lookup)
    }

    pub(super) fn read<T>(&self, setting: &Setting, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, BadSetting> {
        let text = (self.0)(setting.name).unwrap_or_else(|| setting.default.to_owned());
        parse(text.trim()).ok_or_else(|| BadSetting::Value { setting: *setting, shown: shown(setting, &text) })
    }
}

/// The text for the message: on one line, and without a password.
fn shown(setting: &Setting, text: &str) -> String {
    let text = if *setting == settings::DATABASE_URL { database::without_password(text) } else { text.to_owned() };
    text.escape_debug().to_string()
}

pub(super) fn database(text: &str) -> Option<DatabaseUrl> {
    DatabaseUrl::parse(text)
}

pub(super) fn address(text: &str) -> Option<SocketAddr> {
    text.parse().ok()
}

#[expect(clippy::option_option, reason = "the outer None is 'not allowed', the inner one 'switched off'")]
pub(super) fn address_or_none(text: &str) -> Option<Option<SocketAddr>> {
    if text.is_empty() { Some(None) } else { address(text).map(Some) }
}

pub(super) fn number<N: FromStr + PartialOrd>(allowed: RangeInclusive<N>) -> impl FnOnce(&str) -> Option<N> {
    move |text| text.parse().ok().filter(|number| allowed.contains(number))
}

/// A number, or `auto`, which stands for `automatic`.
pub(super) fn number_or_auto<N: FromStr + PartialOrd>(
    automatic: N,
    allowed: RangeInclusive<N>,
) -> impl FnOnce(&str) -> Option<N> {
    move |text| if text == "auto" { Some(automatic) } else { number(allowed)(text) }
}

/// A duration such as `250ms`, `5s`, `15m`, `72h` or `7d`. The unit is required: a bare number would be read as seconds by
/// one person and as milliseconds by the next.
pub(super) fn duration(allowed: RangeInclusive<Duration>) -> impl FnOnce(&str) -> Option<Duration> {
    move |text| humantime::parse_duration(text).ok().filter(|duration| allowed.contains(duration))
}

/// A duration, or `off`, which is `None` as a value.
pub(super) fn duration_or_off(allowed: RangeInclusive<Duration>) -> impl FnOnce(&str) -> Option<Option<Duration>> {
    move |text| if text == "off" { Some(None) } else { duration(allowed)(text).map(Some) }
}

/// `on`, `off`, or `auto`, which stands for `automatic`.
pub(super) fn switch(automatic: bool) -> impl FnOnce(&str) -> Option<bool> {
    move |text| match text {
        "on" => Some(true),
        "off" => Some(false),
        "auto" => Some(automatic),
        _ => None,
    }
}

pub(super) fn on_or_off(text: &str) -> Option<bool> {
    switch(false)(text).filter(|_| text != "auto")
}

pub(super) fn log_filter(text: &str) -> Option<String> {
    let parsed = env_filter::Builder::new().try_parse(text).is_ok();
    (parsed && !text.is_empty()).then(|| text.to_owned())
}
