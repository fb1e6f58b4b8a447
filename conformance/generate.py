#!/usr/bin/env python3
"""Writes the vectors beside this file. Standard library only; shares no code with the product.

    python3 conformance/generate.py

Signatures are computed here, with hmac and hashlib. What a receiver or sender must do with them is written down by
hand, from the Standard Webhooks specification, draft-ietf-httpapi-idempotency-key-header and RFC 9110.
"""

import base64
import hashlib
import hmac
import json
import pathlib
from datetime import datetime, timedelta, timezone

HERE = pathlib.Path(__file__).parent


def write(name, description, **content):
    text = json.dumps({"description": description, **content}, ensure_ascii=True, indent=2)
    (HERE / name).write_text(text + "\n")


def b64(data):
    return base64.b64encode(data).decode()


# --- signatures ------------------------------------------------------------------------------------------------------

KEY_A = bytes(range(24))
KEY_B = bytes(range(100, 164))
KEY_C = hashlib.sha256(b"another secret").digest()
SECRET_A, SECRET_B, SECRET_C = ("whsec_" + b64(key) for key in (KEY_A, KEY_B, KEY_C))

ID = "dlv_01jd1q8v6yeqgb8h0s5m3n9x2k"
AT = 1774000000
BODY = b'{"type":"renewal.reminder","timestamp":"2026-03-20T09:46:40.000Z","data":{"premium":"129.90"}}'
BODIES = {
    "plain JSON": BODY,
    "UTF-8 beyond ASCII": '{"name":"Zürich – 東京 🗓"}'.encode(),
    "empty": b"",
    "bytes that are no UTF-8": bytes([0xFF, 0x00, 0xFE, 0x0A]),
    "white space that parsing would lose": b'{ "b" : 1,\r\n  "a" : 1.0 }\n',
}


def v1(key, message_id, timestamp, body):
    signed = message_id.encode() + b"." + str(timestamp).encode() + b"." + body
    return "v1," + b64(hmac.new(key, signed, hashlib.sha256).digest())


def x256(key, body):
    return hmac.new(key, body, hashlib.sha256).hexdigest()


def headers(signature, message_id=ID, timestamp=AT):
    return {"webhook-id": message_id, "webhook-timestamp": str(timestamp), "webhook-signature": signature}


def verify_case(name, expect, sent, secrets=(SECRET_A,), body=BODY, now=AT, scheme="standard-webhooks"):
    return {
        "name": name,
        "scheme": scheme,
        "secrets": list(secrets),
        "headers": sent,
        "body_base64": b64(body),
        "now": now,
        "tolerance_seconds": 300,
        "expect": expect,
    }


def without(sent, name):
    return {key: value for key, value in sent.items() if key != name}


GOOD = v1(KEY_A, ID, AT, BODY)
GOOD_HEADERS = headers(GOOD)
X_GOOD = x256(KEY_A, BODY)
CHANGED = BODY.replace(b"129.90", b"129.91")


def x_case(name, expect, value, **rest):
    return verify_case(name, expect, {"x-signature-256": value}, scheme="x-signature-256", **rest)


PUBLISHED_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PUBLISHED = {
    "name": "the example that the Standard Webhooks libraries are tested with",
    "secrets": [PUBLISHED_SECRET],
    "webhook_id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "timestamp": 1614265330,
    "body_base64": b64(b'{"test": 2432232314}'),
    "webhook_signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    "x_signature_256": x256(base64.b64decode(PUBLISHED_SECRET[6:]), b'{"test": 2432232314}'),
}
# Copied from the specification's libraries; the computation here must agree before it may judge others.
assert PUBLISHED["webhook_signature"] == v1(
    base64.b64decode(PUBLISHED_SECRET[6:]), PUBLISHED["webhook_id"], PUBLISHED["timestamp"], b'{"test": 2432232314}'
)

sign_cases = [PUBLISHED] + [
    {
        "name": name,
        "secrets": [SECRET_A],
        "webhook_id": ID,
        "timestamp": AT,
        "body_base64": b64(body),
        "webhook_signature": v1(KEY_A, ID, AT, body),
        "x_signature_256": x256(KEY_A, body),
    }
    for name, body in BODIES.items()
]
sign_cases.append(
    {
        "name": "two active secrets, newest first; X-Signature-256 uses the newest",
        "secrets": [SECRET_B, SECRET_A],
        "webhook_id": ID,
        "timestamp": AT,
        "body_base64": b64(BODY),
        "webhook_signature": v1(KEY_B, ID, AT, BODY) + " " + GOOD,
        "x_signature_256": x256(KEY_B, BODY),
    }
)

verify_cases = [
    verify_case("one signature, one secret", "valid", GOOD_HEADERS),
    verify_case("header names in another case", "valid", {key.title(): value for key, value in GOOD_HEADERS.items()}),
    verify_case("the secret without its prefix", "valid", GOOD_HEADERS, secrets=[SECRET_A[6:]]),
    verify_case("the second of two secrets", "valid", GOOD_HEADERS, secrets=[SECRET_B, SECRET_A]),
    verify_case("the second of two signatures", "valid", headers(v1(KEY_C, ID, AT, BODY) + " " + GOOD)),
    verify_case("a signature of an unknown version before ours", "valid", headers("v1a,AAAA " + GOOD)),
    *[
        verify_case(f"body: {name}", "valid", headers(v1(KEY_A, ID, AT, body)), body=body)
        for name, body in BODIES.items()
    ],
    verify_case("exactly as old as tolerated", "valid", GOOD_HEADERS, now=AT + 300),
    verify_case("exactly as far ahead as tolerated", "valid", GOOD_HEADERS, now=AT - 300),
    verify_case("one second too old", "timestamp_too_old", GOOD_HEADERS, now=AT + 301),
    verify_case("one second too far ahead", "timestamp_too_new", GOOD_HEADERS, now=AT - 301),
    verify_case("no webhook-id", "missing_header", without(GOOD_HEADERS, "webhook-id")),
    verify_case("no webhook-timestamp", "missing_header", without(GOOD_HEADERS, "webhook-timestamp")),
    verify_case("no webhook-signature", "missing_header", without(GOOD_HEADERS, "webhook-signature")),
    verify_case("an empty webhook-signature", "missing_header", headers("")),
    verify_case("only X-Signature-256 where webhook-signature is expected", "missing_header", {"x-signature-256": X_GOOD}),
    verify_case("a timestamp that is a date", "bad_timestamp", headers(GOOD, timestamp="2026-03-20T09:46:40Z")),
    verify_case("a timestamp with a fraction", "bad_timestamp", headers(GOOD, timestamp=f"{AT}.5")),
    verify_case("a negative timestamp", "bad_timestamp", headers(GOOD, timestamp=-AT)),
    verify_case("a timestamp in milliseconds", "timestamp_too_new", headers(GOOD, timestamp=AT * 1000)),
    verify_case("only a signature of another version", "unsupported_signature", headers("v1a," + GOOD[3:])),
    verify_case("a signature without its version", "unsupported_signature", headers(GOOD[3:])),
    verify_case("another secret", "no_matching_signature", GOOD_HEADERS, secrets=[SECRET_C]),
    verify_case("another body", "no_matching_signature", GOOD_HEADERS, body=CHANGED),
    verify_case("another id", "no_matching_signature", headers(GOOD, message_id=ID[:-1] + "m")),
    verify_case("another timestamp", "no_matching_signature", headers(GOOD, timestamp=AT + 1)),
    verify_case("a signature cut short", "no_matching_signature", headers(GOOD[:20])),
    verify_case("a signature with nothing in it", "no_matching_signature", headers("v1,")),
    verify_case("a signature that is too long", "no_matching_signature", headers("v1," + b64(bytes(33)))),
    verify_case("the hexadecimal digits of the right signature", "no_matching_signature",
                headers("v1," + base64.b64decode(GOOD[3:]).hex())),
    verify_case("no secret", "bad_secret", GOOD_HEADERS, secrets=[]),
    x_case("X-Signature-256", "valid", X_GOOD),
    x_case("X-Signature-256, the second of two secrets", "valid", X_GOOD, secrets=[SECRET_B, SECRET_A]),
    x_case("X-Signature-256 does not age", "valid", X_GOOD, now=AT + 10_000_000),
    x_case("X-Signature-256 of another body", "no_matching_signature", X_GOOD, body=CHANGED),
    x_case("X-Signature-256 with another secret", "no_matching_signature", X_GOOD, secrets=[SECRET_C]),
    x_case("X-Signature-256 with the prefix of another scheme", "unsupported_signature", "sha256=" + X_GOOD),
    x_case("X-Signature-256 of 63 digits", "unsupported_signature", X_GOOD[:63]),
    x_case("X-Signature-256 of 65 digits", "unsupported_signature", X_GOOD + "0"),
    x_case("X-Signature-256 of 1 digit", "unsupported_signature", "0"),
    x_case("X-Signature-256 of 64 characters that are 65 bytes", "unsupported_signature", "\u00e9" + X_GOOD[1:]),
    x_case("X-Signature-256 sent twice", "unsupported_signature", X_GOOD + ", " + X_GOOD),
    x_case("an empty X-Signature-256", "missing_header", ""),
    verify_case("no X-Signature-256", "missing_header", {}, scheme="x-signature-256"),
]

secret_cases = [
    {"name": "24 bytes", "secret": SECRET_A, "key_hex": KEY_A.hex()},
    {"name": "24 bytes without the prefix", "secret": SECRET_A[6:], "key_hex": KEY_A.hex()},
    {"name": "64 bytes", "secret": SECRET_B, "key_hex": KEY_B.hex()},
    {"name": "32 bytes, padded", "secret": SECRET_C, "key_hex": KEY_C.hex()},
    {"name": "32 bytes, padding left out", "secret": SECRET_C.rstrip("="), "key_hex": None},
    {"name": "the version of a signature before it", "secret": "v1," + SECRET_A, "key_hex": None},
    {"name": "a line feed at the end", "secret": SECRET_A + "\n", "key_hex": None},
    {"name": "a space before it", "secret": " " + SECRET_A, "key_hex": None},
    {"name": "8 bytes", "secret": "whsec_" + b64(bytes(range(8))), "key_hex": None},
    {"name": "23 bytes", "secret": "whsec_" + b64(bytes(range(23))), "key_hex": None},
    {"name": "65 bytes", "secret": "whsec_" + b64(bytes(range(65))), "key_hex": None},
    {"name": "no base64", "secret": "whsec_correct horse battery staple, honestly", "key_hex": None},
    {"name": "base64url", "secret": "whsec_" + base64.urlsafe_b64encode(bytes([0xFB] * 24)).decode(), "key_hex": None},
    {"name": "only the prefix", "secret": "whsec_", "key_hex": None},
    {"name": "empty", "secret": "", "key_hex": None},
]

write(
    "signatures.json",
    "Signing, verifying and reading secrets. `expect` is `valid` or the name of the reason; `key_hex` null means the "
    "secret is refused.",
    sign=sign_cases,
    verify=verify_cases,
    secrets=secret_cases,
)

# --- idempotency -----------------------------------------------------------------------------------------------------


def call(name, handler=None, key="k-1", body='{"n":1}', webhook_id="dlv_1", expect=None, runs=None, **more):
    step = {"call": name, "webhook_id": webhook_id, "idempotency_key": key, "body": body, "handler": handler, **more}
    return {**step, "expect": expect, "handler_runs": runs}


def ok(text, status=200):
    return {"status": status, "body": text}


def answered(status, body=None, replayed=False):
    return {"status": status, "body": body, "replayed": replayed}


scenarios = [
    {
        "name": "a repeat gets the recorded answer and the handler does not run again",
        "steps": [
            call("a", ok("one", 201), expect=answered(201, "one"), runs=1),
            call("b", ok("two"), expect=answered(201, "one", True), runs=1),
            call("c", ok("three"), expect=answered(201, "one", True), runs=1),
        ],
    },
    {
        "name": "an empty 204 is recorded as well",
        "steps": [
            call("a", {"status": 204, "body": None}, expect=answered(204), runs=1),
            call("b", ok("two"), expect=answered(204, None, True), runs=1),
        ],
    },
    {
        "name": "another key is another call",
        "steps": [
            call("a", ok("one"), expect=answered(200, "one"), runs=1),
            call("b", ok("two"), key="k-2", webhook_id="dlv_2", expect=answered(200, "two"), runs=2),
        ],
    },
    {
        "name": "keys differ in case",
        "steps": [
            call("a", ok("one"), expect=answered(200, "one"), runs=1),
            call("b", ok("two"), key="K-1", webhook_id="dlv_2", expect=answered(200, "two"), runs=2),
        ],
    },
    {
        "name": "the quoted form of a key is the same key",
        "steps": [
            call("a", ok("one"), key='"k-1"', expect=answered(200, "one"), runs=1),
            call("b", ok("two"), key="k-1", expect=answered(200, "one", True), runs=1),
        ],
    },
    {
        "name": "409 while the first call is being handled, its answer afterwards",
        "steps": [
            call("a", "waits", expect=None, runs=1),
            call("b", ok("two"), expect=answered(409), runs=1),
            {"finish": "a", "handler": ok("one"), "expect": answered(200, "one"), "handler_runs": 1},
            call("c", ok("three"), expect=answered(200, "one", True), runs=1),
        ],
    },
    {
        "name": "another key is not held up by the first",
        "steps": [
            call("a", "waits", expect=None, runs=1),
            call("b", ok("two"), key="k-2", webhook_id="dlv_2", expect=answered(200, "two"), runs=2),
            {"finish": "a", "handler": ok("one"), "expect": answered(200, "one"), "handler_runs": 2},
        ],
    },
    {
        "name": "422 when the key comes with another body, even one byte of white space",
        "steps": [
            call("a", ok("one"), expect=answered(200, "one"), runs=1),
            call("b", ok("two"), body='{"n":2}', expect=answered(422), runs=1),
            call("c", ok("three"), body='{"n":1} ', expect=answered(422), runs=1),
            call("d", ok("four"), expect=answered(200, "one", True), runs=1),
        ],
    },
    {
        "name": "400 without a key, or with one that is none",
        "steps": [
            call("a", ok("one"), key=None, expect=answered(400), runs=0),
            call("b", ok("one"), key="", expect=answered(400), runs=0),
            call("c", ok("one"), key="k-1, k-1", expect=answered(400), runs=0),
            call("d", ok("one"), key="k" * 256, expect=answered(400), runs=0),
            call("e", ok("one"), key="k" * 255, expect=answered(200, "one"), runs=1),
        ],
    },
    {
        "name": "an answer that is not a 2xx is not recorded: the next attempt runs",
        "steps": [
            call("a", ok("later", 503), expect=answered(503, "later"), runs=1),
            call("b", ok("no", 404), expect=answered(404, "no"), runs=2),
            call("c", ok("one"), expect=answered(200, "one"), runs=3),
            call("d", ok("two"), expect=answered(200, "one", True), runs=3),
        ],
    },
    {
        "name": "a handler that fails is not recorded: the next attempt runs",
        "steps": [
            call("a", "fails", expect=answered(500), runs=1),
            call("b", ok("one"), expect=answered(200, "one"), runs=2),
            call("c", ok("two"), expect=answered(200, "one", True), runs=2),
        ],
    },
    {
        "name": "the attempt number changes nothing",
        "steps": [
            call("a", ok("one"), attempt=1, expect=answered(200, "one"), runs=1),
            call("b", ok("two"), attempt=2, expect=answered(200, "one", True), runs=1),
        ],
    },
    {
        "name": "the same key under a new delivery id is a repeat: a sender that lost its ids kept its keys",
        "steps": [
            call("a", ok("one"), expect=answered(200, "one"), runs=1),
            call("b", ok("two"), webhook_id="dlv_2", expect=answered(200, "one", True), runs=1),
        ],
    },
    {
        "name": "one delivery has one key: the id is signed and the key is not",
        "steps": [
            call("a", ok("one"), expect=answered(200, "one"), runs=1),
            call("b", ok("two"), key="k-2", expect=answered(422), runs=1),
        ],
    },
    {
        "name": "a call whose signature is not believed leaves no trace",
        "steps": [
            call("a", ok("one"), signed=False, expect=answered(401), runs=0),
            call("b", ok("one"), expect=answered(200, "one"), runs=1),
            call("c", ok("two"), signed=False, expect=answered(401), runs=1),
        ],
    },
]

write(
    "idempotency.json",
    "What a receiver answers, step by step. `handler` says what the handler would do if it ran: answer, `fails` "
    "(throws), or `waits` (until the step that finishes it). `expect` null: not answered yet. `body` null in an "
    "expectation: not compared when the status is 4xx or 5xx, empty otherwise. `handler_runs` counts since the start "
    "of the scenario. `signed` false: signed with another secret. 2xx answers are recorded, others are not.",
    scenarios=scenarios,
)

# --- Retry-After -----------------------------------------------------------------------------------------------------

NOW = datetime(2026, 3, 20, 9, 46, 40, tzinfo=timezone.utc)
DAY_SECONDS = 86_400
WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def imf(at):
    return f"{WEEKDAYS[at.weekday()][:3]}, {at.day:02} {MONTHS[at.month - 1]} {at.year} {at:%H:%M:%S} GMT"


def rfc850(at):
    return f"{WEEKDAYS[at.weekday()]}, {at.day:02}-{MONTHS[at.month - 1]}-{at.year % 100:02} {at:%H:%M:%S} GMT"


def asctime(at):
    return f"{WEEKDAYS[at.weekday()][:3]} {MONTHS[at.month - 1]} {at.day:2} {at:%H:%M:%S} {at.year}"


def hint(name, header, seconds):
    capped = None if seconds is None else max(0, min(seconds, DAY_SECONDS))
    return {"name": name, "header": header, "seconds": capped}


LATER = NOW + timedelta(hours=3, seconds=20)
NEXT_MONTH = datetime(2026, 4, 5, 9, 0, 0, tzinfo=timezone.utc)
NEW_YEAR = datetime(2026, 12, 31, 23, 59, 59, tzinfo=timezone.utc)


def until(at):
    return int((at - NOW).total_seconds())


hints = [hint(f"{text!r} seconds", text, int(text)) for text in ("0", "1", "120", "900", "007", "86400")]
hints += [hint(f"{text!r} is capped at 24 h", text, int(text)) for text in ("86401", "4294967296")]
hints += [hint(f"{text!r}: white space around it", text, 120) for text in (" 120", "120 ", "\t120\t")]
for label, form in (("IMF-fixdate", imf), ("RFC 850 date", rfc850), ("asctime date", asctime)):
    hints.append(hint(label, form(LATER), until(LATER)))
    hints.append(hint(f"{label}, the same second", form(NOW), 0))
    hints.append(hint(f"{label} in the past", form(NOW - timedelta(days=400)), -1))
    hints.append(hint(f"{label} next month is capped, one-digit day", form(NEXT_MONTH), until(NEXT_MONTH)))
    hints.append(hint(f"{label} at the end of the year is capped", form(NEW_YEAR), until(NEW_YEAR)))
hints += [
    hint("the IMF-fixdate of RFC 9110", "Sun, 06 Nov 1994 08:49:37 GMT", -1),
    hint("the RFC 850 date of RFC 9110 is 1994, not 2094", "Sunday, 06-Nov-94 08:49:37 GMT", -1),
    hint("an RFC 850 year 50 years ahead is in the future", rfc850(NOW.replace(year=2076)), DAY_SECONDS),
    hint("an RFC 850 year 51 years ahead is in the past", "Sunday, 20-Mar-77 09:46:40 GMT", -1),
]
hints += [
    hint(name, text, None)
    for name, text in (
        ("empty", ""),
        ("only white space", "  "),
        ("negative", "-5"),
        ("with a plus", "+30"),
        ("decimal", "1.5"),
        ("decimal without a fraction", "120.0"),
        ("exponent", "1e3"),
        ("hexadecimal", "0x10"),
        ("a unit", "120s"),
        ("a listed number: the header came twice", "120, 120"),
        ("a number with parameters", "120;q=1"),
        ("digits that are not ASCII", "\u0661\u0662\u0660"),
        ("quoted", '"120"'),
        ("a word", "soon"),
        ("ISO 8601", "2026-03-20T12:00:00Z"),
        ("a calendar date", "2027-01-01"),
        ("another zone", "Fri, 20 Mar 2026 12:00:00 +0100"),
        ("no zone", "Fri, 20 Mar 2026 12:00:00"),
        ("a day that the month does not have", "Tue, 31 Feb 2026 12:00:00 GMT"),
        ("an hour that the day does not have", "Fri, 20 Mar 2026 24:00:00 GMT"),
        ("a month that no year has", "Fri, 20 Mai 2026 12:00:00 GMT"),
        ("a day of one digit", "Sun, 5 Apr 2026 09:00:00 GMT"),
        ("two dates", imf(LATER) + ", " + imf(LATER)),
        ("a date and a number", imf(LATER) + ", 120"),
    )
]

write(
    "retry-after.json",
    "What Retry-After (RFC 9110, 10.2.3) asks a sender to wait at `now`, capped at 24 h; 0 for a date that has "
    "passed; null: ignored.",
    now=NOW.strftime("%Y-%m-%dT%H:%M:%SZ"),
    cases=hints,
)
