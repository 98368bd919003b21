#!/usr/bin/env python3
"""Verifies settlement receipts with their log proofs. Standard library only. Its author read the specification
(plugins/receipts/README.md) and the guide, and no code of the project.

stdin: JSON array of {"answer", "did", "maxAge"?, "transaction"?}; stdout: JSON array of amounts or "refused: WHY".
"""
import base64, binascii, functools, hashlib, io, json, re, sys, time

SKEW = 600          # seconds that clocks may differ
HEX64 = r"[0-9a-f]{64}"
DECIMAL = r"0|[1-9][0-9]{0,77}"
SHA = r"sha256:[0-9a-f]{64}"
UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
ACTIONS = {"deposit", "claim", "settle", "refund", "withdraw"}

class Refused(Exception): pass

def need(condition, why):
    if not condition: raise Refused(why)

def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()

def is_int(value, low=0):
    return type(value) is int and low <= value < 2 ** 53

def matches(pattern, value):
    return isinstance(value, str) and re.fullmatch(pattern, value) is not None

# --- encodings ---
def b64(text, why, size=None, url=False):
    """The bytes, if the text is their canonical base64 (or base64url without padding)."""
    need(matches(r"[A-Za-z0-9_-]*" if url else r"[A-Za-z0-9+/]*={0,2}", text) and len(text) % 4 != 1, why)
    raw = base64.b64decode(text + "=" * (-len(text) % 4), b"-_") if url else base64.b64decode(text)
    again = base64.b64encode(raw, b"-_").rstrip(b"=") if url else base64.b64encode(raw)
    need(again.decode() == text and size in (None, len(raw)), why)
    return raw

def b64u(text, why, size=None):
    return b64(text, why, size, True)

def whole(text, why):
    need(matches(r"0|[1-9][0-9]{0,15}", text), why)
    return int(text)

def hex32(text, why):
    need(matches(HEX64, text), why)
    return bytes.fromhex(text)

def canonical(value):
    if isinstance(value, dict):
        members = sorted(value.items(), key=lambda member: member[0].encode("utf-16-be"))
        return "{" + ",".join(canonical(k) + ":" + canonical(v) for k, v in members) + "}"
    if value is True:
        return "true"
    need(isinstance(value, str) or (type(value) is int and abs(value) < 2 ** 53), "a value that signed JSON does not have")
    return json.dumps(value, ensure_ascii=False)  # escapes exactly what RFC 8785 escapes

def canonical_object(text, why):
    value = json.loads(text) if isinstance(text, str) else None
    need(isinstance(value, dict) and canonical(value) == text, why + " is not canonical JSON")
    return value

# --- Ed25519 (RFC 8032, strict) ---
P = 2 ** 255 - 19
L = 2 ** 252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P

def add(a, b):
    e, f = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    g, h = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    w, x, y, z = f - e, h - g, h + g, f + e
    return w * x % P, y * z % P, x * y % P, w * z % P

def multiply(scalar, point):
    total = (0, 1, 1, 0)
    while scalar:
        total = add(total, point) if scalar & 1 else total
        point, scalar = add(point, point), scalar >> 1
    return total

def decompress(raw):
    """The point, or None if the encoding is not canonical, not on the curve, or of small order."""
    sign, y = divmod(int.from_bytes(raw, "little"), 2 ** 255)
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x * pow(2, (P - 1) // 4, P) % P if (x * x - square) % P else x
    if y >= P or (x * x - square) % P or (x == 0 and sign): return None
    x = P - x if x & 1 != sign else x
    point = (x, y, 1, x * y % P)
    return None if multiply(8, point)[0] == 0 else point

BASE = decompress((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))

@functools.lru_cache(4096)
def ed25519(public, message, signature):
    if len(public) != 32 or len(signature) != 64: return False
    s, a, r = int.from_bytes(signature[32:], "little"), decompress(public), decompress(signature[:32])
    if s >= L or a is None or r is None: return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % L
    left, right = multiply(s, BASE), add(r, multiply(k, a))
    return (left[0] * right[2] - right[0] * left[2]) % P == 0 and (left[1] * right[2] - right[1] * left[2]) % P == 0

# --- did.json ---
def key_id(public):
    return hashlib.sha256(public).hexdigest()[:16]

def host_of(did):
    name = did.get("id")
    need(matches(r"did:web:[A-Za-z0-9._-]+(%3A[0-9]{1,5})?", name), "did.json has no did:web id of a host")
    return name[len("did:web:"):].replace("%3A", ":")

def document_keys(did, use):
    """The Ed25519 keys of one use: [(kid, public, validFrom, validUntil or None)]. Others are not known."""
    found, methods = [], did.get("verificationMethod")
    for method in methods if isinstance(methods, list) else []:
        jwk = method.get("publicKeyJwk") if isinstance(method, dict) else None
        if not isinstance(jwk, dict) or (method.get("type"), jwk.get("kty"), jwk.get("crv")) != ("JsonWebKey2020", "OKP", "Ed25519"): continue
        if jwk.get("alg", "EdDSA") != "EdDSA" or not matches(r"[A-Za-z0-9_-]{43}", jwk.get("x")): continue
        public = b64u(jwk["x"], "malformed key in did.json", 32)
        begin, end = method.get("validFrom", 0), method.get("validUntil")
        if method.get("id") == f"{did['id']}#{use}-{key_id(public)}" and is_int(begin) and (end is None or is_int(end)):
            found.append((method["id"], public, begin, end))
    return found

def log_service(did):
    services = did.get("service", [])
    need(isinstance(services, list) and all(isinstance(service, dict) for service in services), "malformed service of did.json")
    found = [service for service in services if service.get("id") == did["id"] + "#log"]
    need(len(found) <= 1, "did.json has two services of the log")
    return found[0] if found else {}

# --- checkpoint ---
def further_lines(lines):
    known = {}
    for line in lines:
        need(line != "", "empty line in the checkpoint's text")
        word, _, rest = line.partition(" ")
        if word in ("previous", "time", "map"):
            need(word not in known, f"second {word} line")
            known[word] = rest
    need(list(known) == [word for word in ("previous", "time", "map") if word in known], "lines of the checkpoint out of order")
    return known

def check_signatures(text, block, origin, did, now):
    """At least one key of the log that is in force now; each line of a known key has to verify."""
    known = {}
    for _, public, begin, end in document_keys(did, "log"):
        known[sha256(origin.encode(), b"\n\x01", public)[:4]] = (public, begin <= now + 60 and (end is None or now < end))
    need(block.endswith("\n"), "signature lines do not end")
    lines, signed, retired = block[:-1].split("\n"), False, False
    need(len(lines) <= 64, "too many signature lines")
    for line in lines:
        parts = re.fullmatch(r"— ([^\s+]+) ([A-Za-z0-9+/=]{8,})", line)
        need(parts, "malformed signature line")
        raw = b64(parts[2], "malformed signature line")
        if parts[1] == origin and raw[:4] in known:
            public, in_force = known[raw[:4]]
            need(ed25519(public, text.encode(), raw[4:]), "the checkpoint's signature does not verify")
            signed, retired = signed or in_force, retired or not in_force
    need(signed, "only a key that is not in force signed the checkpoint" if retired else "no key of the log signed the checkpoint")

def is_origin(origin, host):
    # N was a number in earlier versions; the first epoch has no N.
    return origin == f"{host}/log" or matches(re.escape(f"{host}/log/") + r"([0-9a-f]{16}|[2-9]|[1-9][0-9]{1,14})", origin)

def open_checkpoint(note, did, now):
    need(isinstance(note, str) and len(note) <= 100_000, "no checkpoint")
    need(not re.search("[\x00-\x09\x0b-\x1f\x7f]", note), "control character in the checkpoint")
    body, gap, block = note.rpartition("\n\n")
    need(gap, "the checkpoint is not a signed note")
    lines, host = body.split("\n"), host_of(did)
    need(len(lines) >= 3, "the checkpoint lacks lines")
    origin, first = lines[0], f"{host}/log"
    need(is_origin(origin, host), "the checkpoint is of another host or log")
    count, root, known = whole(lines[1], "malformed size"), b64(lines[2], "malformed root", 32), further_lines(lines[3:])
    need(("previous" in known) == (origin != first), "previous line of a first epoch, or none of a later one")
    if "previous" in known:
        before, size, end = (known["previous"] + "  ").split(" ")[:3]
        need(known["previous"].count(" ") == 2 and is_origin(before, host) and before != origin, "malformed previous line")
        whole(size, "malformed previous line"), b64(end, "malformed previous line", 32)
    if "time" in known:
        known["time"] = whole(known["time"], "malformed time line")
        need(known["time"] <= now + SKEW, "the checkpoint's time is ahead")
    if "map" in known:
        parts = known["map"].split(" ")
        need(len(parts) == 2, "malformed map line")
        known["map"] = [b64(part, "malformed map line", 32) for part in parts]
    check_signatures(body + "\n", block, origin, did, now)
    return {"text": body + "\n", "origin": origin, "first": origin == first, "size": count, "root": root, **known}

# --- the log's tree and the payment map ---
def check_path(leaf, index, hashes, checkpoint, what):
    """RFC 9162 section 2.1.3.2."""
    need(is_int(index) and index < checkpoint["size"], f"index of the {what} is outside the log")
    need(isinstance(hashes, list), f"{what} without a path")
    position, last, node = index, checkpoint["size"] - 1, leaf
    for sibling in hashes:
        sibling = hex32(sibling, f"malformed hash in the path of the {what}")
        need(last > 0, f"path of the {what} is too long")
        if position & 1 or position == last:
            node = sha256(b"\x01", sibling, node)
            while not position & 1 and position:
                position, last = position >> 1, last >> 1
        else:
            node = sha256(b"\x01", node, sibling)
        position, last = position >> 1, last >> 1
    need(last == 0 and node == checkpoint["root"], f"path of the {what} does not lead to the checkpoint's root")

def check_leaf(outcome, checkpoint):
    """The outcome's record is the leaf at the proof's index. Returns the leaf's hash and salt."""
    proof, salt = outcome["proof"], b64u(outcome.get("salt"), "malformed salt", 32)
    leaf = sha256(b"\x00\x01", sha256(salt, outcome["record"].encode()))
    check_path(leaf, proof.get("index"), proof.get("hashes"), checkpoint, "leaf")
    for member, value in (("leafHash", leaf.hex()), ("origin", checkpoint["origin"]), ("size", checkpoint["size"])):
        need(canonical(proof.get(member, value)) == canonical(value), f"{member} is not the checkpoint's or the leaf's")
    epoch = proof.get("epoch", 1 if checkpoint["first"] else 2)
    need(is_int(epoch, 1) and (epoch == 1) == checkpoint["first"], "epoch is not the origin's")
    return leaf, salt

def check_map(proof, record, leaf, salt, checkpoint, did):
    """The payment's newest leaf is this one, so the log has no other of it."""
    shown, since = proof.get("map"), log_service(did).get("mapSince")
    need(since is None or is_int(since), "malformed mapSince")
    if "map" not in checkpoint:
        need(shown is None, "map proof without a map line")
        need(since is None or record["at"] < since * 1000, "a checkpoint without the map, after mapSince")
        return
    need(isinstance(shown, dict) and isinstance(shown.get("hashes"), list), "map line without a map proof")
    secret, hashes, (root, secret_hash) = b64u(shown.get("secret"), "malformed secret of the map", 32), shown["hashes"], checkpoint["map"]
    need(sha256(secret) == secret_hash, "the map's secret is not the line's")
    need(len(hashes) <= 256, "map proof is too long")
    key = sha256(secret, record.get("network", "").encode(), b"\n", record["transaction"].encode())
    node = sha256(b"\x02", key, sha256(salt, str(proof["index"]).encode(), b"\n", leaf))
    bits = int.from_bytes(key, "big")
    for i, sibling in enumerate(hashes):
        sibling = hex32(sibling, "malformed hash in the map proof")
        # A lone leaf is its whole subtree, so its own sibling is never empty.
        need(i or any(sibling), "map proof with an empty sibling of the leaf")
        right = bits >> (256 - len(hashes) + i) & 1
        node = sha256(b"\x03", sibling, node) if right else sha256(b"\x03", node, sibling)
    need(node == root, "the map has another leaf of the payment")

# --- receipt ---
def check_claims(claims, did):
    text = lambda v: isinstance(v, str) and v != ""
    decimal, hash_of, action = (lambda v: matches(DECIMAL, v)), (lambda v: matches(SHA, v)), "action" in claims
    rules = {
        "v": lambda v: is_int(v) and v == 1, "iss": lambda v: v == did["id"], "network": lambda v: v in ("stellar:testnet", "stellar:pubnet"),
        "transaction": lambda v: matches(HEX64, v), "ledger": is_int, "closedAt": is_int, "payer": text, "payTo": text,
        "asset": lambda v: text(v) and v[0] == "C", "amount": decimal, "scheme": text, "settlement": lambda v: matches(UUID, v),
        "attempts": is_int, "fee": decimal}
    optional = {
        "confirmations": lambda v: is_int(v) and v in (1, 2),
        # The specification lists the actions of one scheme only; a guess for others: a name of the same form.
        "action": lambda v: v in ACTIONS if claims["scheme"] == "batch-settlement" else matches(r"[a-z][a-z0-9_-]*", v),
        "channel": lambda v: matches(HEX64, v) and action,
        "totals": lambda v: v and action and all(matches(HEX64, channel) and decimal(total) for channel, total in v.items()),
        "resource": lambda v: isinstance(v, str) and len(v.encode("utf-16-be")) <= 512,
        "resourceHash": lambda v: hash_of(v) and "resource" not in claims, "identifierHash": hash_of}
    need("totals" not in claims or isinstance(claims["totals"], dict), "claim totals")
    for name, rule in {**rules, **optional}.items():
        need(rule(claims[name]) if name in claims else name in optional, f"claim {name}")

def open_receipt(receipt, did):
    """Form and claims of the JWS; its signature needs the key, which the proof has."""
    need(isinstance(receipt, str), "no receipt")
    parts = receipt.split(".")
    need(len(parts) == 3, "the receipt is not a compact JWS")
    header, payload = (b64u(part, "malformed JWS").decode() for part in parts[:2])
    prefix = re.escape(f'{{"alg":"EdDSA","kid":"{did["id"]}#receipt-')
    found = re.fullmatch(prefix + r'([0-9a-f]{16})","typ":"tollkeeper-receipt\+jws"}', header)
    need(found, "another header than the receipt's")
    claims = canonical_object(payload, "payload")
    check_claims(claims, did)
    return {"claims": claims, "kid": f"{did['id']}#receipt-{found[1]}", "message": receipt.rpartition(".")[0].encode(),
            "signature": b64u(parts[2], "malformed signature", 64), "hash": "sha256:" + hashlib.sha256(receipt.encode()).hexdigest()}

def key_entries(proof, checkpoint, kid):
    """The log's entries about the receipt's key that are before the leaf, in the log's order."""
    shown, found = [] if proof.get("keys") is None else proof["keys"], []
    need(isinstance(shown, list) and len(shown) <= 1000, "malformed keys")
    for item in shown:
        need(isinstance(item, dict), "malformed key entry")
        entry = canonical_object(item.get("entry"), "key entry")
        check_path(sha256(b"\x00\x02", item["entry"].encode()), item.get("index"), item.get("hashes"), checkpoint, "key entry")
        if entry.get("use") == "receipt" and entry.get("kid") == kid and item["index"] < proof["index"]:
            need(entry.get("event") in ("announced", "retired") and is_int(entry.get("at")), "malformed key entry")
            public = b64u(entry.get("publicKey"), "malformed key entry", 32)
            need(kid.endswith("#receipt-" + key_id(public)), "key entry with another key than its kid")
            found.append((item["index"], entry["event"], entry["at"] * 1000, public))
    return sorted(found)

def key_in_force(kid, at, proof, checkpoint, did):
    entries = key_entries(proof, checkpoint, kid)
    if entries:
        for index, event, begin, public in entries:
            ended = any(i > index and e == "retired" and end < at for i, e, end, _ in entries)
            if event == "announced" and begin <= at and not ended:
                return public
        raise Refused("the receipt's key was not in force, by the log")
    for known, public, begin, end in document_keys(did, "receipt"):
        if known == kid:
            need(begin * 1000 <= at and (end is None or at <= end * 1000), "the receipt's key was not in force, by did.json")
            return public
    raise Refused("unknown key of the receipt")

def check_record(record, claims, checkpoint, now):
    shown = {**claims, "moved": claims["amount"], "outcome": "settled"}
    for member in ("outcome", "v", "network", "transaction", "settlement", "ledger", "moved", "fee"):
        need(member in record and canonical(record[member]) == canonical(shown[member]), f"{member} of the leaf is not the receipt's")
    need(record.get("by", "operator") == "operator" and record.get("corrects", "failed") == "failed", "malformed leaf")
    need(matches(SHA, record.get("attestation", record["receipt"])), "malformed leaf")
    need(is_int(record.get("at")), "time of the leaf")
    at = record["at"]
    need(at >= (claims["closedAt"] - SKEW) * 1000, "the leaf is earlier than the ledger")
    need(at <= (now + SKEW) * 1000, "the leaf is later than now")
    need("time" not in checkpoint or at <= (checkpoint["time"] + SKEW) * 1000, "the leaf is later than its checkpoint")

def read_outcomes(answer, did, now):
    """[(outcome, record, checkpoint or None, leaf, salt)]; whatever has a proof is proved, in the log's order."""
    outcomes, read, last = answer.get("outcomes"), [], {}
    need(isinstance(outcomes, list) and 0 < len(outcomes) <= 100, "no outcomes")
    for outcome in outcomes:
        need(isinstance(outcome, dict), "malformed outcome")
        record, checkpoint, leaf, salt = canonical_object(outcome.get("record"), "record"), None, None, None
        if outcome.get("proof") is not None:
            need(isinstance(outcome["proof"], dict), "malformed proof")
            checkpoint = open_checkpoint(outcome["proof"].get("checkpoint"), did, now)
            leaf, salt = check_leaf(outcome, checkpoint)
            index, origin = outcome["proof"]["index"], checkpoint["origin"]
            need(index > last.get(origin, -1), "outcomes are not in the log's order")
            last[origin] = index
        read.append((outcome, record, checkpoint, leaf, salt))
    need(read[-1][1].get("outcome") == "settled", "the payment's last outcome is not settled")
    return read

# --- anchor ---
def strkey(public):
    raw = bytes([6 << 3]) + public
    return base64.b32encode(raw + binascii.crc_hqx(raw, 0).to_bytes(2, "little")).decode()

def source_and_memo(envelope):
    """Source account and hash memo of a TransactionEnvelope (XDR), also inside a fee bump."""
    rest = io.BytesIO(envelope)
    def take(size):
        raw = rest.read(size)
        need(len(raw) == size, "malformed envelope")
        return raw
    number = lambda: int.from_bytes(take(4), "big")
    muxed = lambda: take(40 if number() else 32)[-32:]
    kind = number()
    if kind == 5:
        muxed(), take(8)
        kind = number()
    need(kind in (0, 2), "another kind of envelope")
    source = muxed() if kind else take(32)
    take(4 + 8)  # fee, sequence number
    conditions = number()
    need(conditions <= max(kind, 1), "malformed preconditions")
    if conditions == 1 or (conditions == 2 and number()):
        take(16)  # time bounds
    if conditions == 2:
        take(8 if number() else 0), take(8 if number() else 0)  # ledger bounds, least sequence number
        take(8 + 4)
        for _ in range(min(number(), 3)):
            payload = number() == 3
            take(32)
            take(-(-number() // 4) * 4 if payload else 0)
    need(number() == 3, "the anchor's memo is not a hash")
    return source, take(32)

def check_anchor(transaction, did, checkpoint, now):
    anchor = log_service(did).get("anchor")
    need(isinstance(anchor, dict), "did.json names no anchor")
    need(isinstance(transaction, dict) and transaction.get("status") == "SUCCESS", "the anchor's transaction did not succeed")
    source, memo = source_and_memo(b64(transaction.get("envelopeXdr"), "malformed envelope"))
    anchored = open_checkpoint(anchor.get("checkpoint"), did, now)
    need(strkey(source) == anchor.get("account"), "the anchor is of another account")
    need(memo == sha256(anchored["text"].encode()), "the anchor's memo is of another checkpoint")
    if anchored["origin"] == checkpoint["origin"] and anchored["size"] == checkpoint["size"]:
        need(anchored["root"] == checkpoint["root"], "the anchor is of another log")

# --- case ---
def verify(case, now):
    need(isinstance(case, dict) and isinstance(case.get("answer"), dict) and isinstance(case.get("did"), dict), "malformed case")
    answer, did = case["answer"], case["did"]
    host_of(did)
    receipt = open_receipt(answer.get("receipt"), did)
    claims = receipt["claims"]
    for member in ("network", "transaction"):
        need(answer.get(member, claims[member]) == claims[member], f"the answer's {member} is not the receipt's")
    proved = [item for item in read_outcomes(answer, did, now) if item[2] and item[1].get("receipt") == receipt["hash"]]
    need(proved, "no proved outcome has this receipt")
    outcome, record, checkpoint, leaf, salt = proved[-1]
    check_record(record, claims, checkpoint, now)
    public = key_in_force(receipt["kid"], record["at"], outcome["proof"], checkpoint, did)
    need(ed25519(public, receipt["message"], receipt["signature"]), "the receipt's signature does not verify")
    check_map(outcome["proof"], record, leaf, salt, checkpoint, did)
    if case.get("maxAge") is not None:
        need(type(case["maxAge"]) in (int, float) and case["maxAge"] >= 0, "malformed maxAge")
        need("time" in checkpoint and now - checkpoint["time"] <= case["maxAge"], "the checkpoint is too old or has no time")
    if case.get("transaction") is not None:
        check_anchor(case["transaction"], did, checkpoint, now)
    return claims["amount"]

def decide(case, now):
    try:
        return verify(case, now)
    except Refused as why:
        return f"refused: {why}"
    except Exception as error:  # hostile input: whatever else it breaks is a refusal too
        return f"refused: malformed ({type(error).__name__})"

def main():
    try:
        # a number of thousands of digits in one case must not cost the others their answer
        number = lambda digits: int(digits) if len(digits) < 20 else float("inf")
        cases = json.loads(sys.stdin.buffer.read().decode("utf-8", "replace"), parse_int=number)
    except Exception:
        cases = None
    cases = cases if isinstance(cases, list) else [None]
    print(json.dumps([decide(case, time.time()) for case in cases], indent=1))

if __name__ == "__main__":
    main()
