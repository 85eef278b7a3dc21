//! Every kind of problem, once: its word, its status, its meaning and what to do.
//!
//! `/problems/…` shows these rows and `docs/api.md` lists them; a test compares both. A slug is
//! API: once released it keeps its meaning.

#[macro_use]
mod declared;

use axum::http::StatusCode;

slugs! {
    MalformedJson "malformed-json" BAD_REQUEST "no" "no"
        "The body is not JSON"
        "the body is not JSON; `detail` shows line and column",
    InvalidHost "invalid-host" BAD_REQUEST "no" "no"
        "The request does not name exactly one host"
        "the request has no `Host` header, or several: send exactly one",
    Unauthenticated "unauthenticated" UNAUTHORIZED "yes or no" "no"
        "A valid bearer token is required"
        "no bearer token, an unknown one (`numerator token create` makes one), or a JWT that is \
         not accepted: `detail` says why; retryable while the keys of its issuer cannot be read",
    HostNotAllowed "host-not-allowed" FORBIDDEN "no" "no"
        "The service is not asked under that name"
        "the service does not answer to that name (Hosts): use `localhost`, or list the name in \
         `http.hosts`",
    CrossSite "cross-site" FORBIDDEN "no" "no"
        "A page of another site may change nothing"
        "a browser reports that a page of another site asks for a change (Hosts): send it from the \
         program behind the page",
    NotPermitted "not-permitted" FORBIDDEN "no" "no"
        "No role of the caller allows it"
        "none of the caller's roles allows the call; `detail` names those that do: `roles` of the \
         token",
    TooManyRequests "too-many-requests" TOO_MANY_REQUESTS "yes" "no"
        "More was asked for than one may ask for in a minute"
        "the rate limit of the person, the address or the token is reached: wait as long as \
         `Retry-After` says; `RateLimit` shows with each answer what is left",
    OwnChange "own-change" FORBIDDEN "no" "no"
        "Who asked for a change may not approve it"
        "the caller requested this change itself: another person has to approve it; rejecting it \
         withdraws it",
    RouteNotFound "route-not-found" NOT_FOUND "no" "no"
        "There is no such route"
        "no such path",
    TableNotFound "table-not-found" NOT_FOUND "no" "no"
        "There is no such table"
        "no table of reference data has that name; `GET …/reference` lists them",
    ConfigNotFound "config-not-found" NOT_FOUND "no" "no"
        "There is no such numbering configuration"
        "no configuration has that id, or not that version",
    TokenNotFound "token-not-found" NOT_FOUND "no" "no"
        "There is no such token"
        "no token of the ledger has that name; those of the settings are changed there",
    ChangeNotFound "change-not-found" NOT_FOUND "no" "no"
        "There is no such change request"
        "no change request has that id",
    NumberNotFound "number-not-found" NOT_FOUND "no" "no"
        "The journal has no such number"
        "no journal row begins with the number, it is no revision, and no known range contains it; \
         in the look-up by path no series can read it either; or nothing carries the unified \
         serial",
    DocumentNotNumbered "document-not-numbered" NOT_FOUND "yes" "no"
        "The journal has no number of the document"
        "the journal has no (such) number of the document; a number issued a moment ago appears \
         once its record is committed",
    ReservationNotFound "reservation-not-found" NOT_FOUND "no" "no"
        "There is no such reservation"
        "no reservation of the caller has that id, or its number moved to an archive",
    StepNotFound "step-not-found" NOT_FOUND "no" "no"
        "Nobody has begun the step"
        "the step of that system serial was never begun",
    MethodNotAllowed "method-not-allowed" METHOD_NOT_ALLOWED "no" "no"
        "The route has no such method"
        "the header `Allow` lists the methods",
    BodyTimeout "body-timeout" REQUEST_TIMEOUT "no" "no"
        "The body did not arrive in time"
        "the body did not arrive within `http.time_limit`",
    SequenceExhausted "sequence-exhausted" CONFLICT "no" "no"
        "The serial has no value left"
        "the serial that `field` names has too few values left; apply the series with more digits \
         or a higher `max`",
    CounterBelowStart "counter-below-start" CONFLICT "no" "no"
        "The counter has not reached the first value of its serial"
        "the counter of the serial that `field` names is below the `start` of the series: move it \
         (`detail` says how: `numerator move-counter` or `POST …/reset-counter`), or apply a lower \
         `start`",
    VersionConflict "version-conflict" CONFLICT "yes or no" "no or maybe"
        "Somebody else changed the same"
        "other transactions changed the same rows at each try: retry. With `field` `If-Match` (not \
         retryable): the configuration has changed since you read it; read it again",
    TokenNameTaken "token-name-taken" CONFLICT "no" "no"
        "Another token has that name"
        "a token of the ledger has or had that name, and a name belongs to one caller for ever: \
         use another name, or rotate that token",
    TokenRevoked "token-revoked" CONFLICT "no" "no"
        "The token is revoked"
        "the token is revoked for good; create one with another name",
    ChangeAnswered "change-answered" CONFLICT "no" "no"
        "The change request cannot be answered any more"
        "the change request is approved or rejected already, or has expired \
         (`approval.time_limit`): request it anew if it is still needed",
    BelowLeastAllowed "below-least-allowed" CONFLICT "no" "no"
        "What is issued could come again"
        "the next value, or the last date, is below the least allowed one, which `detail` names: \
         an issued number could come again. The bound rises with each number",
    CodeTaken "code-taken" CONFLICT "no" "no"
        "Another numbering configuration has the code"
        "a configuration, active or not, has that code; change it, or use another code",
    SeriesInUse "series-in-use" CONFLICT "no" "no"
        "The series has issued numbers"
        "the series has issued numbers, and the change could issue one of them again; `detail` \
         says what to do instead",
    DocumentAlreadyNumbered "document-already-numbered" CONFLICT "no" "no"
        "The document has a number already"
        "the document has a number that this request does not get: send its own request, or use \
         `document_number`; another caller's is not shown; `\"again\": true` takes a second number",
    DocumentReserved "document-reserved" CONFLICT "no" "no"
        "A number is reserved for the document"
        "a number is reserved for the document and not confirmed: confirm or cancel its \
         reservation; `document_number` shows it, unless another caller reserved it",
    ReservationConfirmed "reservation-confirmed" CONFLICT "no" "no"
        "The reservation is confirmed"
        "the reservation is confirmed, and its number stays: void the number if its document is \
         given up",
    IsABlock "is-a-block" CONFLICT "no" "no"
        "The reservation is a block"
        "a block is neither confirmed nor given up without a reason: hand it back with the numbers \
         that were used (`POST …/hand-back`)",
    ReservationHandedBack "reservation-handed-back" CONFLICT "no" "no"
        "The block was handed back"
        "the block was handed back before, with other numbers or documents: look up the numbers, \
         and register by hand what is missing",
    OtherDocument "other-document" CONFLICT "no" "no"
        "The number is another document's"
        "the number is reserved for, or assigned to, another document; `detail` has both",
    DocumentArchived "document-archived" CONFLICT "no" "no"
        "The document's number is in the archive"
        "the document's record moved to an archive file, which `detail` names: `numerator find \
         --archive` reads it; `\"again\": true` takes a second number",
    NumberVoided "number-voided" CONFLICT "no" "no"
        "The number is void"
        "the number is void; `detail` says since when, by whom and why: it is neither voided again \
         nor corrected nor revised; `generate-number` with `replaces` takes another one in its \
         place",
    NumberReserved "number-reserved" CONFLICT "no" "no"
        "The number is reserved"
        "the number is reserved and not confirmed, and may be another document's once the \
         reservation ends: confirm or cancel that; only a number that was issued is voided or \
         corrected",
    NumberTaken "number-taken" CONFLICT "no" "no"
        "The number was issued already"
        "the number to be registered has a record: it was issued, imported or registered for \
         something else; look it up",
    NumberCollided "number-collided" CONFLICT "no" "no"
        "The value of the number was spent"
        "the value of the number to be registered was spent, because another document has its \
         text; look it up",
    NotVoided "not-voided" CONFLICT "no" "no"
        "The number to be replaced is not void"
        "only a void number is replaced: have it voided first (`POST …/numbers/void`)",
    AlreadyReplaced "already-replaced" CONFLICT "no" "no or maybe"
        "Another number stands in its place already"
        "another number stands in the place of that one, and `detail` names it. Where \
         `number_taken` is `maybe`, this request has taken `document_number`: void it",
    NumberArchived "number-archived" CONFLICT "no" "no"
        "The number is in the archive"
        "the number's record moved to an archive file: it is not changed any more",
    RevisionsExhausted "revisions-exhausted" CONFLICT "no" "no"
        "The number has as many revisions as it may have"
        "the number has 100 revisions, the most that a number may have",
    InterfaceSerialRepeated "interface-serial-repeated" CONFLICT "no" "no"
        "The interface serial was seen before"
        "the interface serial was already accepted within the window; do not serve the call",
    StateUnknown "state-unknown" CONFLICT "no" "no"
        "The step is in progress, or nobody knows"
        "an attempt of the step is in progress, or its runner is gone; `standing` shows which \
         and since when",
    AlreadyProcessed "already-processed" CONFLICT "no" "no"
        "The step has succeeded already"
        "the step has succeeded; do not run it again",
    AttemptNotCurrent "attempt-not-current" CONFLICT "no" "no"
        "The attempt is not in progress"
        "the attempt has ended, is not the step's current one, or was begun by another caller",
    ReservationExpired "reservation-expired" GONE "no" "no"
        "The reservation has expired"
        "the time of the reservation was over before it was confirmed, and its number may be \
         another document's: reserve again",
    ReservationCancelled "reservation-cancelled" GONE "no" "no"
        "The reservation is cancelled"
        "the reservation was cancelled, and its number may be another document's: reserve again",
    ReservationLost "reservation-lost" GONE "no" "no"
        "The reservation is lost"
        "the ledger went back, so that the number of the reservation was spent: reserve again",
    BodyTooLarge "body-too-large" PAYLOAD_TOO_LARGE "no" "no"
        "The body is too large"
        "send less in one request",
    UnsupportedMediaType "unsupported-media-type" UNSUPPORTED_MEDIA_TYPE "no" "no"
        "The body must be application/json"
        "send `Content-Type: application/json`, in UTF-8 and without `Content-Encoding`",
    PreconditionRequired "precondition-required" PRECONDITION_REQUIRED "no" "no"
        "The change must name the version that it builds on"
        "send the header `If-Match` with the `ETag` of the configuration that you have read",
    InvalidField "invalid-field" UNPROCESSABLE_ENTITY "no" "no"
        "A field is missing, unknown or wrong"
        "a field, header or query parameter is missing, unknown or wrong",
    UnknownType "unknown-type" UNPROCESSABLE_ENTITY "no" "no"
        "Unknown document type"
        "no series mentions the document type; `detail` lists the types that are served, the \
         nearest first",
    TypeNotConfigured "type-not-configured" UNPROCESSABLE_ENTITY "no" "no"
        "The document type has no numbering configured"
        "the type exists, but no series numbers it (for this project, originator or sub type); \
         `detail` lists those for which it is numbered, or types that are",
    SeriesAmbiguous "series-ambiguous" UNPROCESSABLE_ENTITY "no" "no"
        "Two series serve the request equally well"
        "two series serve the request equally well; change `serves` of one and apply it",
    TemplateAmbiguous "template-ambiguous" UNPROCESSABLE_ENTITY "no" "no"
        "Two counters can render the same number"
        "a series to be saved is not proved free of collisions (the proof): `detail` shows two \
         readings; or it accepts that and is not `gapless` throughout; or the number exists",
    UnknownVariable "unknown-variable" UNPROCESSABLE_ENTITY "no" "no"
        "The series declares no such variable"
        "the series declares no such variable, or has no phases",
    MissingVariable "missing-variable" UNPROCESSABLE_ENTITY "no" "no"
        "The series needs a value"
        "the series needs the value; `recipients[kind=TO]` where no recipient is of that kind",
    ValueTooLong "value-too-long" UNPROCESSABLE_ENTITY "no" "no"
        "A value is too long"
        "a value is longer than its variable allows, or the number longer than 128 characters; \
         `detail` has the limit",
    ValueTooShort "value-too-short" UNPROCESSABLE_ENTITY "no" "no"
        "A value is too short"
        "a value is shorter than the width of its variable, which `detail` has",
    UnknownValue "unknown-value" UNPROCESSABLE_ENTITY "no" "no"
        "The series takes no such value"
        "the variable declares its `values`, and this is none of them; `detail` names the nearest, \
         or the first few",
    WrongAlphabet "wrong-alphabet" UNPROCESSABLE_ENTITY "no" "no"
        "A value holds a character that is not allowed"
        "a value contains a character that is not allowed, or looks like another value; `detail` \
         says which",
    InvalidDate "invalid-date" UNPROCESSABLE_ENTITY "no" "no"
        "The date is not one"
        "no valid date (`2024-01-22`, or with time and offset `2024-01-22T09:30:00+08:00`; years \
         A.D.), or further from the present than the series takes",
    TimeRequired "time-required" UNPROCESSABLE_ENTITY "no" "no"
        "The template needs a time of day"
        "the template shows a time of day, or a counter resets within a day; send a date-time",
    PeriodClosed "period-closed" UNPROCESSABLE_ENTITY "no" "no"
        "The date lies in a closed period"
        "the series is closed for documents of that date; `detail` names the first open day",
    DateBeforeLast "date-before-last" UNPROCESSABLE_ENTITY "no" "no"
        "The date lies before that of the last number"
        "the series keeps chronology, and a later date has a number already; `detail` names it",
    UnknownReference "unknown-reference" UNPROCESSABLE_ENTITY "no" "no"
        "The reference data have no such code or id"
        "the series' table has no such code or id; correct it, or have it imported",
    InactiveReference "inactive-reference" UNPROCESSABLE_ENTITY "no" "no"
        "A code or id is inactive"
        "the code or id is inactive; use another",
    NotAMember "not-a-member" UNPROCESSABLE_ENTITY "no" "no"
        "The originator is no member of the project"
        "the originator is no member of the project, or of any active one; `detail` lists its \
         projects",
    ProjectAmbiguous "project-ambiguous" UNPROCESSABLE_ENTITY "no" "no"
        "The originator is a member of several projects"
        "the originator is a member of several projects, which `detail` lists; send `project`",
    IdempotencyKeyReused "idempotency-key-reused" UNPROCESSABLE_ENTITY "no" "no"
        "The idempotency key was used for another payload"
        "the key was used for another payload; use a new key for another request",
    Internal "internal" INTERNAL_SERVER_ERROR "no" "no or maybe"
        "The service met a bug"
        "a bug; the log has the cause under the request id; it is safe to repeat the same request",
    UnknownTransferCoding "unknown-transfer-coding" NOT_IMPLEMENTED "no" "no"
        "The body is in a coding that nobody here knows"
        "`Transfer-Encoding` names another coding than `chunked`, or names it twice: send the body \
         in chunks, or with its length",
    DatabaseConnection "database-connection" SERVICE_UNAVAILABLE "yes" "no or maybe"
        "The ledger does not answer"
        "the ledger does not answer; while that is known, requests are refused at once, and the \
         service notices automatically when it is back",
    ExternalRefused "external-refused" BAD_GATEWAY "no" "no"
        "The source of the series refuses the request"
        "the series' source refuses; `detail` has its status, its own log the reason",
    ExternalInvalid "external-invalid" BAD_GATEWAY "no" "no"
        "What the source gives is no value of the series"
        "the series' source gave no value, or one that the series does not take; `detail` says why",
    ExternalNumberTaken "external-number-taken" BAD_GATEWAY "no" "no"
        "The source gave a value twice"
        "the series' source gave a value whose number another document has; once it gives another \
         one, the same request gets its number",
    ExternalUnavailable "external-unavailable" SERVICE_UNAVAILABLE "yes" "no"
        "The source of the series does not answer"
        "the series' source does not answer, has as many calls as it may have, or is not in the \
         settings of this process; `detail` says which",
    LockTimeout "lock-timeout" SERVICE_UNAVAILABLE "yes" "no or maybe"
        "The request waited too long"
        "the request waited longer than its time limit, the caller's (`Prefer: wait`), or that for \
         a lock of the ledger; or another transaction got in its way",
    SeriesChanged "series-changed" SERVICE_UNAVAILABLE "yes" "no or maybe"
        "The series has just changed"
        "the series was changed or removed a moment ago, and this process does not know it yet; \
         or, for a reservation, any series or reference data; send the same request again",
    CeilingReached "ceiling-reached" SERVICE_UNAVAILABLE "yes" "no or maybe"
        "The counter's ceiling is used up and cannot be raised now"
        "the counter's ceiling is used up while the ledger cannot raise it",
    OutboxFull "outbox-full" SERVICE_UNAVAILABLE "yes" "no or maybe"
        "Too many records wait for the journal"
        "the journal is too far behind",
    QueueFull "queue-full" SERVICE_UNAVAILABLE "yes" "no or maybe"
        "Too many requests wait"
        "too many requests wait, or bodies or answers use all the memory of the caller or of the \
         process: slow down; `detail` says which",
    ChecksFull "checks-full" SERVICE_UNAVAILABLE "yes" "no"
        "Too much is being checked"
        "too many series are checked, numbers read back or look-ups made at once, for the caller \
         or in all; or the check of a series took longer than 20 s, and nothing is saved",
    RedisUnavailable "redis-unavailable" SERVICE_UNAVAILABLE "yes" "no or maybe"
        "Redis does not answer"
        "the partition's Redis does not answer, or this process has none",
    PartitionHeld "partition-held" SERVICE_UNAVAILABLE "yes" "no or maybe"
        "The partition waits for an operator"
        "the ledger shows an older state than Redis: bring the newer ledger back, or release \
         the partitions (`numerator reconcile --ledger-restored`, runbook)",
    ClockBehind "clock-behind" SERVICE_UNAVAILABLE "yes" "no"
        "The clock is behind the last id"
        "the clock of this process is behind the last `{SNOWFLAKE}` id of its node number, or \
         outside the years of ids; set it, or use another process",
    NumberNotJournaled "number-not-journaled" SERVICE_UNAVAILABLE "yes" "maybe"
        "The number that was taken is not in the journal"
        "Redis remembers a number of this document or key that the journal does not have: an \
         outbox was just lost, or the ledger refused the record; `numerator verify` shows which",
    NodeNumbersHeld "node-numbers-held" SERVICE_UNAVAILABLE "yes" "no"
        "Every node number for ids is held"
        "1024 processes hold the node numbers of `{SNOWFLAKE}`",
    OlderProcess "older-process" SERVICE_UNAVAILABLE "yes" "no"
        "A process of an earlier version still runs"
        "a process of an earlier version runs on the ledger and does not know reservations: \
         nothing is reserved, registered by hand or assigned until it has ended",
    SeriesUnread "series-unread" SERVICE_UNAVAILABLE "yes" "no"
        "It is not known which series reserve nothing"
        "a version of a series cannot be read, or there are too many texts to compare: nothing is \
         reserved until it is known which series accept an ambiguity; the log says why",
    ReservationsFull "reservations-full" SERVICE_UNAVAILABLE "yes" "no"
        "Too many reservations are live"
        "the series has as many live reservations as `reservations.live_max`: confirm or cancel \
         some, or wait until some have expired",
    NotReady "not-ready" SERVICE_UNAVAILABLE "yes" "no"
        "No new document would get its number"
        "`/readyz` only: no new document would get its number now; `reasons` says why, and `works` \
         what works nevertheless",
    Stopping "stopping" SERVICE_UNAVAILABLE "yes" "no or maybe"
        "The process is stopping"
        "this process is stopping; use another one",
}
