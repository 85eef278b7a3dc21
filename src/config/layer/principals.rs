//! The sections of callers, and of their rates: `auth`, `auth.jwt`, `limits`, `approval`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::auth::COUNT_MAX;
use crate::config::bounds::{days, secs};
use crate::config::tokens::{AuthMode, WrittenToken};
use crate::config::{DurationText, JwtAlgorithm};

section! {
    /// `auth.*`
    Auth {
        /// Whether callers need a token, or a JWT: [who needs one](#who-needs-a-token).
        mode: AuthMode = AuthMode::Auto, "`auto`, `on`, `off`";
        /// Tokens in addition to those of [the ledger](security.md#tokens-of-the-ledger): for the
        /// first start. [Their fields](#authtokens).
        tokens: Vec<WrittenToken> = Vec::new(), "at most 1000",
            like "" "[[auth.tokens]], in two brackets, once for each";
        /// The issuer whose [JWTs](security.md#jwts-of-an-issuer) are accepted, too.
        /// [Its fields](#authjwt).
        jwt: Jwt = Jwt::default(), "", absent "none: no JWT is accepted";
    }
}

section! {
    /// `auth.jwt.*`: nothing of it is used without an issuer.
    Jwt {
        /// The claim `iss` of each JWT. With it, audience, algorithms and exactly one place of keys
        /// must be set.
        issuer: Option<String> = None, "1 to 255 characters", absent "none: no JWT is accepted",
            like "" "\"https://login.example.com\"";
        /// The claim `aud` of each is this, or lists it. Take another for each deployment: a JWT
        /// for one is not accepted by another.
        audience: Option<String> = None, "1 to 255 characters", absent "none",
            like "" "\"numerator\"";
        /// How JWTs may be signed. Each key is for one algorithm; a shared secret and public keys
        /// are never in use together.
        algorithms: Vec<JwtAlgorithm> = Vec::new(),
            "`HS256` alone, or some of `RS256`, `ES256`, `EdDSA`",
            like "a list of algorithms" "[\"RS256\"]";
        /// The one key of the issuer: [a public key or a secret](#keys-of-an-issuer). A set is
        /// wanted where keys change.
        key_file: Option<PathBuf> = None, "path", absent "none",
            like "a path in quotes" "\"/etc/numerator/issuer.pem\"";
        /// A file with the issuer's set of keys (JWKS, RFC 7517), at most 100. Keys for another use
        /// or algorithm are left out.
        jwks_file: Option<PathBuf> = None, "path", absent "none",
            like "a path in quotes" "\"/etc/numerator/jwks.json\"";
        /// The address of that set: [when it is asked for](#keys-of-an-issuer).
        jwks_url: Option<String> = None,
            "`https://…`, or `http://…` of a loopback address; without user and password",
            absent "none", like "an address in quotes" "\"https://login.example.com/jwks\"";
        /// The claim that names the caller: [what it may hold](#names-of-subjects).
        name_claim: String = "sub".into(), "1 to 255 characters";
        /// Whether those are people, held to the [limits of people](security.md#how-often). `false`
        /// where services have accounts at the issuer: then none of its accounts is limited.
        people: bool = true, "";
        /// The claim with roles: a list, or a text with blanks between them. Keycloak has them in
        /// `realm_access.roles`.
        roles_claim: String = "roles".into(), "1 to 255 characters";
        /// Our roles by the words of that claim: `{ staff = ["caller"] }`. Other words mean
        /// nothing; a JWT without a role is not accepted.
        roles: Option<BTreeMap<String, Vec<String>>> = None,
            "1 to 1000 entries; some of the [roles](security.md#roles) each",
            absent "none: the claim has the words of our own roles",
            like "our roles by theirs" "{ clerk = [\"caller\"] }";
        /// The claim with the codes of the projects to which the subject is restricted:
        /// [how it is read](#names-of-subjects).
        projects_claim: Option<String> = None, "1 to 255 characters",
            absent "none: no restriction to projects",
            like "the name of a claim" "\"projects\"";
        /// The same of series.
        series_claim: Option<String> = None, "1 to 255 characters",
            absent "none: no restriction to series", like "the name of a claim" "\"series\"";
        /// The most numbers that one call of theirs may ask for, as a range or as a list of
        /// documents.
        count_max: Option<u64> = None, 1..=COUNT_MAX,
            absent "none: 1 where `auth.jwt.people`, else 1000000", like "" "1";
    }
}

section! {
    /// `limits.*`
    Limits {
        /// Numbers a minute that one person takes or previews, in however many requests
        /// ([who counts as one](security.md#people), [how](security.md#how-often)). 0: any number.
        user_per_minute: u64 = 10, 0..=1_000_000;
        /// The same of all people at one address (of one /64 network of IPv6). 0: any number.
        address_per_minute: u64 = 50, 0..=1_000_000;
    }
}

section! {
    /// `approval.*`
    Approval {
        /// How long a change that [two people answer for](security.md#what-two-people-answer-for)
        /// can be approved. The setting of the process that took the request counts.
        time_limit: DurationText = days(1), secs(60)..=days(30);
    }
}
