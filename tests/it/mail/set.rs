//! How a mail server is administered: checked before it is written down, asked by `mail check`, its password nowhere.

use crate::harness::process;
use crate::harness::relay::SECRET;
use crate::harness::smtp::{FROM, FakeSmtp, Moment, Step};
use crate::harness::world::{World, on_both_databases};

on_both_databases! {
    async fn a_mail_server_is_set_and_checked_and_its_password_is_nowhere(world: World) {
        let server = FakeSmtp::start();
        world.shop();
        let settings = [SECRET, ("ORDERS_ERP_ALLOW_PRIVATE", "on")];
        let run = |arguments: &[&str], settings: &[(&str, &str)]| {
            let output = process::run(world.database().url(), arguments, settings);
            let text = [output.stdout, output.stderr].concat();
            (output.status.success(), String::from_utf8(text).expect("it is text"))
        };
        let url = server.url();
        let set = ["mail", "set", "--tenant", "acme", "--kind", "smtp", "--url", &url, "--from", FROM, "--user", "shop", "--secret-env", SECRET.0];
        let (done, said) = run(&set, &settings);
        assert!(done && said.contains("0 messages wait for it"), "{said}");
        let check = ["mail", "check", "--tenant", "acme"];
        let (done, said) = run(&check, &settings);
        assert!(done && said.contains("the mail server lets us in; the connection is not encrypted"), "{said}");
        server.script(&[Step::Say(Moment::Login, "535 wrong password")]);
        let (done, said) = run(&check, &settings);
        assert!(!done && said.contains("the mail server answered 535: wrong password") && !said.contains(SECRET.1), "{said}");
        assert_eq!((server.conversations(), server.mails().len()), (2, 0));
        let rows = format!("{:?}", world.rows("SELECT channel, kind, url, secret_name, options FROM connections"));
        assert!(rows.contains(SECRET.0) && rows.contains("orders@shop.example") && !rows.contains(SECRET.1), "{rows}");
        for (arguments, settings, wrong) in [
            (&set[..], &settings[1..], "the variable ORDERS_SECRET_HOOK is not set"),
            (&check, &settings[..1], "in a private network"),
            (&["mail", "check", "--tenant", "other"], &settings[..], "tenant 'other' has no mail server"),
            (&["mail", "set", "--tenant", "other", "--kind", "sandbox"], &settings, "there is no tenant 'other'"),
            (&["mail", "set", "--tenant", "acme", "--kind", "smtp", "--url", &url, "--from", "nobody"], &settings, "--from has to be an address"),
            (&["mail", "set", "--tenant", "acme", "--kind", "smtp", "--url", &url, "--from", FROM, "--user", "x", "--secret-env", "HOME"], &settings, "begins with ORDERS_SECRET_"),
        ] {
            let (done, said) = run(arguments, settings);
            assert!(!done && said.contains(wrong) && !said.contains(SECRET.1), "{wrong}: {said}");
        }
        let smtp = |url: &'static str, user: &'static str| {
            vec!["mail", "set", "--tenant", "acme", "--kind", "smtp", "--url", url, "--from", FROM, "--user", user, "--secret-env", SECRET.0]
        };
        for (arguments, password, wrong) in [
            (smtp("smtp://127.0.0.1:25", "shop"), SECRET.1, "'127.0.0.1' is in a private network"),
            (smtp("smtp://[::1]", "shop"), SECRET.1, "'::1' is in a private network"),
            (smtp("smtp://%31%32%37.0.0.1", "shop"), SECRET.1, "'127.0.0.1' is in a private network"),
            (smtp("smtp://%20", "shop"), SECRET.1, "no host name"),
            (smtp("smtps://..", "shop"), SECRET.1, "no host name"),
            (smtp("smtp://mail.example:0", "shop"), SECRET.1, "port 0"),
            (smtp("smtp://mail.example#f", "shop"), SECRET.1, "behind '#'"),
            (smtp("smtp://mail.example", ""), SECRET.1, "--user is the name to log in with"),
            (smtp("smtp://mail.example", "a\nb"), SECRET.1, "--user is the name to log in with"),
            (smtp("smtp://mail.example", "shop"), "", "the variable ORDERS_SECRET_HOOK is empty"),
            (vec!["mail", "set", "--tenant", "acme", "--kind", "sandbox", "--from", FROM], SECRET.1, "'sandbox' has no --from"),
        ] {
            let (done, said) = run(&arguments, &[(SECRET.0, password)]);
            assert!(!done && said.contains(wrong) && said.lines().count() == 1, "{arguments:?}: {said}");
        }
        let (done, said) = run(&["mail", "set", "--tenant", "acme", "--kind", "sandbox"], &settings);
        assert!(done, "{said}");
        let (done, said) = run(&check, &settings);
        assert!(done && said.contains("takes every mail and sends none"), "{said}");
    }
}
