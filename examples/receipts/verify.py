#!/usr/bin/env python3
"""Verifies receipts, as plugins/receipts/README.md specifies them, with only Python's standard library.

Run `python3 verify.py ANSWER.json did.json [SECONDS]`. It prints the claims, or why the receipt is refused (exit code
1); with SECONDS, it refuses a checkpoint that is older.
It is a second implementation, in Python, of the checks of verify.mjs and needs no package.
"""
import base64
import hashlib
import json
import re
import sys
import time


class Refused(Exception):
    """The receipt does not verify; the message is why."""


def need(condition, why):
    if not condition:
        raise Refused(why)


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


# Ed25519 (RFC 8032), strict: one encoding for each point and scalar, and no point of small order.
P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)


def point_of(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * ROOT % P
    if x * x % P != square or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


def added(a, b):
    e, f = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    c, d = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    h, i, j, k = f - e, d - c, d + c, f + e
    return h * i % P, j * k % P, i * j % P, h * k % P


def times(scalar, point):
    result = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            result = added(result, point)
        point, scalar = added(point, point), scalar >> 1
    return result


def same(a, b):
    return (a[0] * b[2] - b[0] * a[2]) % P == 0 and (a[1] * b[2] - b[1] * a[2]) % P == 0


BASE = point_of((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def is_signed(key, signature, message):
    if len(key) != 32 or len(signature) != 64:
        return False
    a, r, s = point_of(key), point_of(signature[:32]), int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= L or same(times(8, a), (0, 1, 1, 0)) or same(times(8, r), (0, 1, 1, 0)):
        return False
    hashed = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % L
    return same(times(s, BASE), added(r, times(hashed, a)))


# Base64, JSON and RFC 8785, each with one form.
def unb64(text):
    need(isinstance(text, str) and re.fullmatch(r"[A-Za-z0-9+/]*={0,2}", text), "not base64")
    data = base64.b64decode(text + "=" * (-len(text) % 4))
    need(base64.b64encode(data).decode() == text, "base64 of another form")
    return data


def unb64u(text):
    need(isinstance(text, str) and re.fullmatch(r"[\w-]*", text, re.ASCII), "not base64url")
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    need(base64.urlsafe_b64encode(data).decode().rstrip("=") == text, "base64url of another form")
    return data


def unhex(text):
    need(isinstance(text, str) and re.fullmatch(r"[0-9a-f]{64}", text), "not a hash in hex")
    return bytes.fromhex(text)


def is_whole(value):
    return type(value) is int and 0 <= value < 10**15


def canonical(value):
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(f"{canonical(name)}:{canonical(value[name])}" for name in names) + "}"
    need(isinstance(value, (str, bool)) or (type(value) is int and abs(value) < 2**53), "a value that is not signed")
    return json.dumps(value, ensure_ascii=False)


def read_canonical(text):
    value = json.loads(text)
    need(isinstance(value, dict) and canonical(value).encode() == text.encode(), "not canonical JSON")
    return value


UNITS = r"0|[1-9]\d{0,38}"
HASH = r"sha256:[0-9a-f]{64}"
TEXTS = {"iss": ".+", "network": "stellar:[a-z]+", "transaction": "[0-9a-f]{64}", "payer": ".+", "payTo": ".+",
         "asset": ".+", "amount": UNITS, "scheme": ".+", "settlement": ".+", "fee": UNITS}
OPTIONAL = {"resource": ".*", "resourceHash": HASH, "identifierHash": HASH, "action": "[a-z]+",
            "channel": "[0-9a-f]{64}"}


def check_claims(claims):
    for name, form in {**TEXTS, **OPTIONAL}.items():
        value = claims.get(name)
        isForm = isinstance(value, str) and re.fullmatch(form, value, re.ASCII | re.DOTALL)
        need(isForm or (name in OPTIONAL and name not in claims), f"its {name} is malformed")
    for name in ("ledger", "closedAt", "attempts"):
        need(is_whole(claims.get(name)), f"its {name} is malformed")
    need(claims.get("v") == 1 and is_whole(claims["v"]), "claims of another version")
    confirmations = claims.get("confirmations", 1)
    need(is_whole(confirmations) and confirmations in (1, 2), "its confirmations are malformed")
    totals = claims.get("totals", {})
    need(isinstance(totals, dict) and (totals or "totals" not in claims), "its totals are malformed")
    for channel, total in totals.items():
        need(re.fullmatch("[0-9a-f]{64}", channel) and isinstance(total, str) and re.fullmatch(UNITS, total, re.ASCII),
             "its totals are malformed")
    need("action" in claims or not {"channel", "totals"} & claims.keys(), "its action is missing")


def open_receipt(jws, did, keys):
    """The claims and the key; `keys` are methods, the first of a name counts."""
    parts = jws.split(".")
    need(len(parts) == 3, "not a compact JWS")
    header, payload, signature = (unb64u(part) for part in parts)
    head, claims = read_canonical(header.decode()), read_canonical(payload.decode())
    key = next((key for key in keys if key["id"] == head.get("kid")), None)
    need(key is not None and head == {"alg": "EdDSA", "kid": key["id"], "typ": "tollkeeper-receipt+jws"},
         "a header of no key of the facilitator")
    need(is_signed(unb64u(key["publicKeyJwk"]["x"]), signature, f"{parts[0]}.{parts[1]}".encode()), "not signed")
    check_claims(claims)
    need(claims["iss"] == did["id"], "a receipt of another facilitator")
    return claims, key


# The log: checkpoint, tree and map.
def methods(did, use):
    return [key for key in did["verificationMethod"] if key["id"].startswith(f"{did['id']}#{use}-")]


def open_checkpoint(note, did, now):
    body, separator, lines = note.partition("\n\n")
    body += "\n"
    rows = body.split("\n")
    seals = lines.split("\n")
    need(separator and len(rows) >= 4 and seals.pop() == "" and seals, "not a signed note")
    need(not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", note), "a control character in the note")
    origin, size, root = rows[:3]
    host = re.fullmatch(r"([^\s/+]+)/log(/[\w-]+)?", origin, re.ASCII)
    need(host and f"did:web:{host[1].replace(':', '%3A')}" == did["id"], "a log of another host")
    need(re.fullmatch(r"0|[1-9]\d{0,14}", size, re.ASCII) and len(unb64(root)) == 32, "a malformed checkpoint")
    for seal in seals:
        need(re.fullmatch(r"— [^\s+]+ [A-Za-z0-9+/]+=*", seal), "a malformed line of a signature")
    signers = []
    for key in methods(did, "log"):
        public = unb64u(key["publicKeyJwk"]["x"])
        name = sha(f"{origin}\n".encode(), b"\x01", public)[:4]
        for seal in seals:
            _, of, signature = seal.split(" ")
            if of != origin or unb64(signature)[:4] != name:
                continue
            need(is_signed(public, unb64(signature)[4:], body.encode()), f"a line of {key['id']} does not verify")
            signers.append(key)
    need(signers, "no key of the log signed the checkpoint")
    need(any(key.get("validUntil", now + 1) > now and key.get("validFrom", 0) <= now + 60 for key in signers),
         "a retired key of the log signed the checkpoint")
    maps = [row for row in rows[3:] if row.startswith("map ")]
    need(len(maps) <= 1, "two maps in one checkpoint")
    times = [row[5:] for row in rows[3:] if row.startswith("time ")]
    need(len(times) <= 1 and all(re.fullmatch(r"0|[1-9]\d{0,10}", time, re.ASCII) for time in times),
         "a malformed time")
    tree = {"origin": origin, "size": int(size), "root": unb64(root), "time": int(times[0]) if times else None}
    if not maps:
        return {**tree, "map": None}
    parts = maps[0].split(" ")
    need(len(parts) == 3 and all(len(unb64(part)) == 32 for part in parts[1:]), "a malformed map")
    return {**tree, "map": [unb64(part) for part in parts[1:]]}


def root_by(leaf, index, size, path):
    """RFC 9162, section 2.1.3.2."""
    need(is_whole(index) and index < size, "a leaf that is not in the tree")
    at, last, node = index, size - 1, leaf
    for side in map(unhex, path):
        need(last > 0, "a path that is too long")
        if at & 1 or at == last:
            node = sha(b"\x01", side, node)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            node = sha(b"\x01", node, side)
        at, last = at >> 1, last >> 1
    need(last == 0, "a path that is too short")
    return node


def check_map(tree, proof, record, salt, index, leaf):
    need((tree["map"] is None) == (proof is None), "its proof in the map is missing")
    if proof is None:
        return
    secret = unb64u(proof["secret"])
    key = sha(secret, f"{record.get('network', '')}\n{record['transaction']}".encode())
    node = sha(b"\x02", key, sha(salt, f"{index}\n".encode(), leaf))
    depth = len(proof["hashes"])
    need(depth <= 256, "a path that is too long")
    for at, side in enumerate(map(unhex, proof["hashes"])):
        bit = depth - 1 - at
        is_right = key[bit // 8] >> (7 - bit % 8) & 1
        node = sha(b"\x03", *((side, node) if is_right else (node, side)))
    need([node, sha(secret)] == tree["map"], "the log's map has another leaf of this payment")


def in_force(events, key, seconds):
    own = [event for event in events if event["kid"] == key["id"]]
    if not own:
        return key.get("validFrom", 0) <= seconds <= key.get("validUntil", seconds)
    is_over = lambda after: any(
        one["event"] == "retired" and one["index"] > after and one["at"] < seconds for one in own)
    return any(one["event"] == "announced" and one["at"] <= seconds and not is_over(one["index"]) for one in own)


def prove(answer, did, now, max_age):
    receipt = answer["receipt"]
    name = f"sha256:{sha(receipt.encode()).hex()}"
    outcomes = [(read_canonical(one["record"]), one) for one in answer["outcomes"]]
    own = [pair for pair in outcomes if pair[1].get("proof") and pair[0].get("receipt") == name]
    need(own, "no proof")
    record, outcome = own[-1]
    salt, proof = unb64u(outcome["salt"]), outcome["proof"]
    need(len(salt) == 32, "a salt of another length")
    leaf = sha(b"\x00\x01", sha(salt, outcome["record"].encode()))
    tree = open_checkpoint(proof["checkpoint"], did, now)
    need(root_by(leaf, proof["index"], tree["size"], proof["hashes"]) == tree["root"], "no such leaf")
    events = []
    for one in proof.get("keys", []):
        entry = sha(b"\x00\x02", one["entry"].encode())
        need(root_by(entry, one["index"], tree["size"], one["hashes"]) == tree["root"], "no such leaf of a key")
        event = {**json.loads(one["entry"]), "index": one["index"]}
        if event["use"] == "receipt" and event["index"] < proof["index"]:
            events.append(event)
    known = [{"id": event["kid"], "publicKeyJwk": {"x": event["publicKey"]}} for event in events]
    claims, key = open_receipt(receipt, did, known + methods(did, "receipt"))
    said = {"v": 1, "outcome": "settled", "moved": claims["amount"]}
    said |= {member: claims[member] for member in ("fee", "ledger", "network", "settlement", "transaction")}
    beside = {"origin": tree["origin"], "size": tree["size"], "leafHash": leaf.hex()}
    differing = [one for one in said if record.get(one) != said[one] or type(record[one]) is not type(said[one])]
    differing += [one for one in beside if one in proof and proof[one] != beside[one]]
    need(not differing, f"its leaf says otherwise: {', '.join(differing)}")
    need(is_whole(record.get("at")), "a leaf without a time")
    seconds = record["at"] / 1000
    signed = seconds if tree["time"] is None else tree["time"]
    need(claims["closedAt"] <= seconds + 600 and seconds <= signed + 600 and max(seconds, signed) <= now + 600,
         "a leaf of another time")
    need(max_age is None or (tree["time"] is not None and now - tree["time"] <= max_age), "an old checkpoint")
    need(outcomes[-1][0]["outcome"] == "settled", "a later leaf says otherwise")
    service = next((one for one in did.get("service", []) if one["id"] == f"{did['id']}#log"), {})
    need(tree["map"] is not None or seconds < service.get("mapSince", seconds + 1), "its proof in the map is missing")
    check_map(tree, proof.get("map"), record, salt, proof["index"], leaf)
    need(in_force(events, key, seconds), f"{key['id']} was not in force")
    return claims


def verify(answer, did, now=None, max_age=None):
    """The claims of a receipt with its proof; raises Refused for anything else."""
    try:
        return prove(answer, did, time.time() if now is None else now, max_age)
    except Refused:
        raise
    except (AttributeError, KeyError, IndexError, RecursionError, TypeError, ValueError) as error:
        raise Refused(f"malformed: {error}") from error


if __name__ == "__main__":
    answer, did = (json.load(open(place, encoding="utf-8")) for place in sys.argv[1:3])
    max_age = float(sys.argv[3]) if len(sys.argv) > 3 else None
    try:
        print(json.dumps(verify(answer, did, max_age=max_age), indent=2))
    except Refused as error:
        sys.exit(f"refused: {error}")
