"""Writes bundle-vectors.json: hashes, trees, seals and signatures of evidence, computed without duepost.

Python 3.9 and its standard library only; run from anywhere: python3 conformance/evidence.py
"""

import base64
import hashlib
import json
import pathlib


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


# The trail: each entry's hash covers the one before it.


def chain(entries):
    before = b""
    for entry in entries:
        text = "\n".join([str(entry["entry"]), entry["at"], entry["event"], entry["actor"], entry["detail"]])
        before = sha256(before, text.encode())
        yield before.hex()


# RFC 9162, section 2.1, in its own words.


def leaf_hash(data):
    return sha256(b"\x00", data)


def split(n):
    k = 1
    while k * 2 < n:
        k *= 2
    return k


def root(leaves):
    if not leaves:
        return sha256()
    if len(leaves) == 1:
        return leaves[0]
    k = split(len(leaves))
    return sha256(b"\x01", root(leaves[:k]), root(leaves[k:]))


def inclusion(m, leaves):
    if len(leaves) == 1:
        return []
    k = split(len(leaves))
    if m < k:
        return inclusion(m, leaves[:k]) + [root(leaves[k:])]
    return inclusion(m - k, leaves[k:]) + [root(leaves[:k])]


def subproof(m, leaves, known):
    if m == len(leaves):
        return [] if known else [root(leaves)]
    k = split(len(leaves))
    if m <= k:
        return subproof(m, leaves[:k], known) + [root(leaves[k:])]
    return subproof(m - k, leaves[k:], False) + [root(leaves[:k])]


# Ed25519 as in RFC 8032, section 5.1; slow, and good enough for a vector.

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def add(a, b):
    x1, y1, z1, t1 = a
    x2, y2, z2, t2 = b
    A, B = (y1 - x1) * (y2 - x2) % P, (y1 + x1) * (y2 + x2) % P
    C, E = 2 * t1 * t2 * D % P, 2 * z1 * z2 % P
    e, f, g, h = B - A, E - C, E + C, B + A
    return e * f % P, g * h % P, f * g % P, e * h % P


def multiply(s, point):
    result = (0, 1, 1, 0)
    while s:
        if s & 1:
            result = add(result, point)
        point = add(point, point)
        s >>= 1
    return result


def base_point():
    y = 4 * pow(5, P - 2, P) % P
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if x & 1:
        x = P - x
    return x, y, 1, x * y % P


BASE = base_point()


def encode(point):
    x, y, z, _ = point
    inverse = pow(z, P - 2, P)
    x, y = x * inverse % P, y * inverse % P
    return (y | ((x & 1) << 255)).to_bytes(32, "little")


def key_pair(seed):
    h = hashlib.sha512(seed).digest()
    a = int.from_bytes(h[:32], "little") & ((1 << 254) - 8) | (1 << 254)
    return a, h[32:], encode(multiply(a, BASE))


def sign(seed, message):
    a, prefix, public = key_pair(seed)
    r = int.from_bytes(hashlib.sha512(prefix + message).digest(), "little") % L
    R = encode(multiply(r, BASE))
    k = int.from_bytes(hashlib.sha512(R + public + message).digest(), "little") % L
    return R + ((r + k * a) % L).to_bytes(32, "little")


def pem(label, der):
    return f"-----BEGIN {label}-----\n{base64.b64encode(der).decode()}\n-----END {label}-----\n"


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


# Test 2 of RFC 8032, section 7.1: if this does not hold, nothing below is worth anything.
RFC_SEED = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
assert sign(RFC_SEED, b"\x72").hex() == (
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
)


def main():
    entries = [
        {"entry": 1, "at": "2027-03-01T08:00:00.000000Z", "event": "schedule", "actor": "api:key_1", "detail": '{"due_at":"2027-03-01T08:00:00.000Z"}'},
        {"entry": 2, "at": "2027-03-01T08:00:00.123456Z", "event": "retry", "actor": "worker@a", "detail": '{"status":503}'},
        {"entry": 3, "at": "2027-03-01T08:15:00.000001Z", "event": "deliver", "actor": "worker@b", "detail": '{"note":"Müller\\n\\u0007 \U0001f4ee"}'},
    ]
    hashes = list(chain(entries))
    leaf = {
        "leaf": "delivery", "kind": "reminder", "delivery_id": "dlv_01jn8m5s00f00000000000000x", "trail_length": 3,
        "trail_sha256": hashes[-1], "content_sha256": sha256(b"content").hex(), "record": None,
    }
    inputs = [canonical(leaf)] + [f"leaf {i}".encode() for i in range(1, 7)]
    leaves = [leaf_hash(data) for data in inputs]
    _, _, public = key_pair(RFC_SEED)
    spki = bytes.fromhex("302a300506032b6570032100") + public
    seals, texts = [], []
    for number in range(1, 4):
        statement = {
            "type": "duepost.seal", "v": 1, "number": number, "sealed_at": f"2027-03-0{number}T09:00:00.000000Z",
            "key_id": sha256(spki).hex()[:16],
            "previous_sha256": leaf_hash(texts[-1]).hex() if texts else None,
            "history_root_sha256": root([leaf_hash(text) for text in texts]).hex(),
            "leaves": 7, "root_sha256": root(leaves).hex(),
            "parts": [{"kind": "reminder", "month": "2027-03", "leaves": 7}],
        }
        texts.append(canonical(statement))
        seals.append({"statement": statement, "text": texts[-1].decode(), "sha256": leaf_hash(texts[-1]).hex(), "signature": sign(RFC_SEED, texts[-1]).hex()})
    vectors = {
        "description": "chain: entries and their hashes. leaf: what is hashed of a delivery. tree: inputs (UTF-8), root, and all proofs; sizes and indexes as in RFC 9162. seals: three, each following the one before, signed with the key.",
        "chain": {"entries": entries, "sha256": hashes},
        "leaf": {"content": leaf, "text": inputs[0].decode(), "sha256": leaves[0].hex()},
        "tree": {
            "inputs": [data.decode() for data in inputs],
            "root": root(leaves).hex(),
            "inclusion": [[h.hex() for h in inclusion(i, leaves)] for i in range(7)],
            "consistency": [{"size": m, "root": root(leaves[:m]).hex(), "path": [h.hex() for h in subproof(m, leaves, True)]} for m in range(1, 7)],
        },
        "key": {
            "private": pem("PRIVATE KEY", bytes.fromhex("302e020100300506032b657004220420") + RFC_SEED),
            "public": pem("PUBLIC KEY", spki),
            "key_id": sha256(spki).hex()[:16],
        },
        "seals": seals,
    }
    target = pathlib.Path(__file__).with_name("bundle-vectors.json")
    target.write_text(json.dumps(vectors, indent=2, ensure_ascii=False) + "\n")


main()
