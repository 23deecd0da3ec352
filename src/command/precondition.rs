//! Preconditions of a command that writes to a name the client chose (RFC 9110, section 13.1): create only if it does not
//! exist, replace only if it is the version that the client knows.

use super::fingerprint::Intent;
use crate::problem::{Code, Problem};

/// What has to hold for the command to be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// `If-None-Match: *`: there is nothing of that name.
    Absent,
    /// `If-Match: *`: there is something of that name.
    Present,
    /// `If-Match` with entity tags: it is one of these versions. Holds the opaque parts of the strong tags; weak tags
    /// match nothing (section 8.8.3.2).
    Version(Vec<String>),
}

impl Precondition {
    /// Reads the precondition of a request that needs one.
    ///
    /// # Errors
    /// 428 `PreconditionRequired` without one, 400 `MalformedRequest` for one that cannot be read. Neither is recorded.
    pub fn of(asked: &Intent) -> Result<Precondition, Problem> {
        let malformed = |detail| Problem::new(Code::MalformedRequest, detail);
        match (asked.if_match.as_deref(), asked.if_none_match.as_deref()) {
            (None, None) => Err(Problem::new(
                Code::PreconditionRequired,
                "The request has neither If-None-Match nor If-Match, so that it could overwrite what you do not know.",
            )),
            (Some(_), Some(_)) => Err(malformed("Send If-Match or If-None-Match, not both.")),
            (None, Some(tags)) if tags.trim() == "*" => Ok(Precondition::Absent),
            (None, Some(_)) => Err(malformed("If-None-Match can only be '*' here.")),
            (Some(tags), None) if tags.trim() == "*" => Ok(Precondition::Present),
            (Some(tags), None) => entity_tags(tags).map(Precondition::Version).ok_or_else(|| {
                malformed("If-Match is not a list of entity tags; send the ETag as you got it, with quotes.")
            }),
        }
    }
}

/// The opaque parts of the strong tags in a list (section 8.8.3); nothing when the list is malformed.
fn entity_tags(list: &str) -> Option<Vec<String>> {
    let mut strong = Vec::new();
    let mut rest = list.trim();
    loop {
        let weak = rest.starts_with("W/");
        let opened = rest.strip_prefix("W/").unwrap_or(rest).strip_prefix('"')?;
        let (tag, behind) = opened.split_once('"')?;
        if !weak {
            strong.push(tag.to_owned());
        }
        rest = behind.trim_start();
        if rest.is_empty() {
            return Some(strong);
        }
        rest = rest.strip_prefix(',')?.trim_start();
    }
}

#[cfg(test)]
mod tests {
    use super::entity_tags;

    #[test]
    fn lists_of_entity_tags_are_read_and_rubbish_is_not() {
        let tags = |list| entity_tags(list).map(|tags| tags.join("|"));
        assert_eq!(tags(r#""1""#).as_deref(), Some("1"));
        assert_eq!(tags(r#" "1" , "a,b","" "#).as_deref(), Some("1|a,b|"));
        assert_eq!(tags(r#"W/"1", "2""#).as_deref(), Some("2"));
        for list in ["", "1", r#""1"#, r#""1" "2""#, r#""1","#, r#"w/"1""#] {
            assert_eq!(tags(list), None, "{list}");
        }
    }
}
