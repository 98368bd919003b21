// Verifies receipts with Web Crypto only: JWS, RFC 8785, RFC 9162, C2SP. Run `node verify.mjs ANSWER.json did.json`.
export const bytesOf = (b64) => Uint8Array.from(atob(b64.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt())
export const hexOf = (bytes) => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("")
const unhex = (hex) => Uint8Array.from(hex?.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16))
const [utf8, b64] = [(text) => new TextEncoder().encode(text), (bytes) => btoa(String.fromCharCode(...bytes))]
const b64u = (bytes) => b64(bytes).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "")
export const sha256 = async (...all) => hexOf(await crypto.subtle.digest("SHA-256", await new Blob(all).arrayBuffer()))
export const leafHash = (entry) => sha256(Uint8Array.of(0), entry)
export const nodeHash = (left, right) => sha256(Uint8Array.of(1), unhex(left), unhex(right))
const refuse = (why) => Promise.reject(new Error(why))
export const canonical = (value) => {
  if (typeof value === "string" && !value.isWellFormed()) throw new Error("a lone surrogate is no JSON of RFC 8785")
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonical)}]`
  const names = Object.keys(value).sort()
  return `{${names.map((name) => `${canonical(name)}:${canonical(value[name])}`)}}`
}
const keysOf = (did, use) => did.verificationMethod.filter(({ id }) => id.startsWith(`${did.id}#${use}-`))
const isSigned = async ({ publicKeyJwk: { x } }, signature, text) => {
  const key = await crypto.subtle.importKey("raw", bytesOf(x), "Ed25519", false, ["verify"])
  return crypto.subtle.verify("Ed25519", key, signature, utf8(text))
}

// A receipt has one encoding, and every claim has a fixed form. Unknown members are ignored.
const [whole, units, word] = [/^(0|[1-9]\d{0,14})$/, /^"(0|[1-9]\d{0,38})"$/, /^".+"$/]
const [hashed, id] = [/^("sha256:[0-9a-f]{64}"|undefined)$/, /^("[0-9a-f]{64}"|undefined)$/]
const words = { iss: word, payer: word, payTo: word, asset: word, scheme: word, settlement: word }
const exact = { v: /^1$/, network: /^"stellar:[a-z]+"$/, transaction: /^"[0-9a-f]{64}"$/, amount: units, fee: units }
const numbers = { ledger: whole, closedAt: whole, attempts: whole, confirmations: /^([12]|undefined)$/ }
const optional = { resource: /^(".*"|undefined)$/, resourceHash: hashed, identifierHash: hashed, channel: id }
const totals = /^(\{("[0-9a-f]{64}":"(0|[1-9]\d{0,38})",?)+\}|undefined)$/
const forms = Object.entries({ ...words, ...exact, ...numbers, ...optional, totals })
export const openReceipt = async (jws, did) => {
  const [header, payload, seal, ...more] = jws.split(".")
  const [{ alg, kid }, claims] = [header, payload].map((part) => JSON.parse(new TextDecoder().decode(bytesOf(part))))
  const key = keysOf(did, "receipt").find(({ id }) => id === kid)
  const isOurs = alg === "EdDSA" && key && !more.length && (await isSigned(key, bytesOf(seal), `${header}.${payload}`))
  if (!isOurs) return refuse(`not signed: ${alg}, ${kid}`)
  const parts = [{ alg, kid, typ: "tollkeeper-receipt+jws" }, claims].map((part) => b64u(utf8(canonical(part))))
  const isCanonical = jws === [...parts, b64u(bytesOf(seal))].join(".") && claims.iss === did.id
  const action = (claims.channel ?? claims.totals) ? /^"[a-z]+"$/ : /^("[a-z]+"|undefined)$/
  const [wrong] = [...forms, ["action", action]].find(([name, form]) => !form.test(canonical(claims[name]))) ?? []
  return isCanonical && !wrong ? { claims, key } : refuse(wrong ? `its ${wrong} is malformed` : "not canonical")
}

// A checkpoint is a signed text. Its key must be in force at `at`, in seconds; NaN accepts any time.
const logForm = /^(([^\s/+]+)\/log(?:\/[\w-]+)?)\n(0|[1-9]\d{0,14})\n([A-Za-z0-9+/]{43}=)\n(?:[^\p{Cc}]+\n)*\n/u
const linesForm = /\n\n((?:— [^\s+]+ [A-Za-z0-9+/]+=*\n)+)$/
export const openCheckpoint = async (note, did, at = Date.now() / 1000) => {
  const [, origin = "", host, size, root] = logForm.exec(note) ?? []
  const [ending, lines] = linesForm.exec(note) ?? []
  if (!ending || `did:web:${encodeURIComponent(host)}` !== did.id || b64(bytesOf(root)) !== root)
    return refuse(`not signed by ${did.id}`)
  const [body, seals] = [note.slice(0, 1 - ending.length), lines.trimEnd().split("\n")]
  const signers = keysOf(did, "log").map(async (key) => {
    const id = (await sha256(`${origin}\n`, Uint8Array.of(1), bytesOf(key.publicKeyJwk.x))).slice(0, 8)
    const own = seals.map((line) => line.split(" ")).filter(([, name]) => name === origin)
    const known = own.map(([, , seal]) => seal).filter((seal) => hexOf(bytesOf(seal)).startsWith(id))
    const isValid = (seal) => b64(bytesOf(seal)) === seal && isSigned(key, bytesOf(seal).subarray(4), body)
    const valid = await Promise.all(known.map(isValid))
    return valid.every(Boolean) ? valid.length > 0 && key : refuse(`not signed by ${key.id}, whose line it has`)
  })
  const keys = (await Promise.all(signers)).filter(Boolean)
  const key = keys.find(({ validFrom, validUntil }) => !(validUntil <= at) && !(validFrom > at + 60))
  if (!key) return refuse(keys[0] ? `a retired key of the log signed it: ${keys[0].id}` : `not signed by ${did.id}`)
  const linesOf = (name) => body.split("\n").filter((one) => one.startsWith(`${name} `))
  const [[line = "", ...others], [stamp, ...stamps]] = [linesOf("map"), linesOf("time")]
  const [, mapRoot, secretHash] = /^map ([A-Za-z0-9+/]{43}=) ([A-Za-z0-9+/]{43}=)$/.exec(line) ?? []
  if (others.length > 0 || (line && !mapRoot)) return refuse("its map is malformed")
  const map = line ? { map: { root: hexOf(bytesOf(mapRoot)), secretHash: hexOf(bytesOf(secretHash)) } } : {}
  const [, time] = /^time (0|[1-9]\d{0,10})$/.exec(stamp) ?? []
  if (stamps.length > 0 || (stamp && !time)) return refuse("its time is malformed")
  return { origin, size: Number(size), root: hexOf(bytesOf(root)), key, ...map, ...(time && { time: Number(time) }) }
}
const climb = async (part, size, path, isLeaf) => {
  if (part < 1 || (isLeaf ? size <= 1 : part >= size)) return path.length === 1 ? [path[0], path[0]] : []
  const [left, side, rest] = [2 ** ((size - 1).toString(2).length - 1), path.at(-1), path.slice(0, -1)]
  const [was, is] = await climb(...(part > left ? [part - left, size - left] : [part, left]), rest, isLeaf)
  return part > left ? [await nodeHash(side, was), await nodeHash(side, is)] : [was, await nodeHash(is, side)]
}
const isIndex = (index, size) => Number.isSafeInteger(index) && index >= 0 && index < size
export const checkInclusion = async ({ root, size }, index, hash, path) =>
  (isIndex(index, size) && (await climb(index + 1, size, [hash, ...path], true))[1] === root) || refuse("no such leaf")
export const checkConsistency = async (older, newer, path) => {
  const isWhole = older.size === newer.size || Number.isInteger(Math.log2(older.size))
  const [was, is] = await climb(older.size, newer.size, isWhole ? [older.root, ...path] : path)
  return (was === older.root && is === newer.root) || refuse("the newer log does not continue the older")
}

// A checkpoint's map has one place for each payment, so one current leaf.
export const mapPlace = async ({ secret }, { network, transaction }, salt, index, leaf) => ({
  key: await sha256(bytesOf(secret), `${network ?? ""}\n${transaction}`),
  value: await sha256(bytesOf(salt), `${index}\n`, unhex(leaf))
})
export const checkMap = async ({ map }, { hashes, secret }, { key, value }) => {
  const sides = hashes.every((hash) => /^[0-9a-f]{64}$/.test(hash)) && hashes.length <= 256 ? hashes : await refuse("")
  const bits = Array.from(key, (digit) => Number.parseInt(digit, 16).toString(2).padStart(4, "0")).join("")
  let hash = await sha256(Uint8Array.of(2), unhex(key), unhex(value))
  for (const [at, side] of sides.entries())
    hash = await sha256(Uint8Array.of(3), unhex(bits[sides.length - 1 - at] === "1" ? side + hash : hash + side))
  const isOne = hash === map.root && (await sha256(bytesOf(secret))) === map.secretHash
  return isOne || refuse("the log's map has another leaf of this payment")
}

// The leaf must match the receipt. The log's entries (`keys`), else the document, decide when its key was in force.
export const openKey = async (tree, { entry, hashes, index }) => {
  await checkInclusion(tree, index, await leafHash(Uint8Array.of(2, ...utf8(entry))), hashes)
  const { at, event, kid, publicKey, use } = JSON.parse(entry)
  return { id: kid, use, publicKeyJwk: { x: publicKey }, index, event, at }
}
export const isInForce = (events, { id, validFrom, validUntil }, seconds) => {
  const own = events.filter((one) => one.id === id)
  if (own.length === 0) return validFrom <= seconds && !(seconds > validUntil)
  const isOver = (from) => own.some(({ at, event, index }) => event === "retired" && index > from && at < seconds)
  return own.some(({ at, event, index }) => event === "announced" && at <= seconds && !isOver(index))
}
export const prove = async ({ outcomes, receipt }, did, at) => {
  const name = `sha256:${await sha256(receipt)}`
  const isOwn = (one) => one.proof && JSON.parse(one.record).receipt === name
  const own = outcomes.findLast(isOwn) ?? (await refuse("no proof"))
  const [{ proof, record, salt }, said] = [own, JSON.parse(own.record)]
  const leaf = await leafHash(Uint8Array.of(1, ...unhex(await sha256(bytesOf(salt), canonical(said)))))
  const tree = await openCheckpoint(proof.checkpoint, did, at)
  await checkInclusion(tree, proof.index, leaf, proof.hashes)
  const opened = await Promise.all((proof.keys ?? []).map((one) => openKey(tree, one)))
  const events = opened.filter(({ index, use }) => use === "receipt" && index < proof.index)
  const { claims, key } = await openReceipt(receipt, {
    ...did,
    verificationMethod: [...events, ...did.verificationMethod]
  })
  const { amount, closedAt, fee, ledger, network, settlement, transaction } = claims
  const paid = { v: 1, outcome: "settled", network, transaction, settlement, ledger, moved: amount, fee }
  const differing = Object.keys(paid).filter((member) => said[member] !== paid[member])
  const beside = { origin: tree.origin, size: tree.size, leafHash: leaf }
  differing.push(...Object.keys(beside).filter((member) => ![undefined, beside[member]].includes(proof[member])))
  if (record !== canonical(said) || b64u(bytesOf(salt)) !== salt || salt.length !== 43) differing.push("its form")
  const [seconds, latest, { time = said.at / 1000 }] = [said.at / 1000, Date.now() / 1000 + 600, tree]
  if (!(closedAt - 600 <= seconds && seconds - 600 <= time && Math.max(seconds, time) <= latest))
    differing.push("its time")
  if (differing.length > 0) return refuse(`its leaf says otherwise: ${differing.join(", ")}`)
  const last = JSON.parse(outcomes.at(-1).record).outcome
  if (last !== "settled") return refuse(`a later leaf says that the payment ${last}`)
  const { mapSince } = did.service?.find(({ id }) => id === `${did.id}#log`) ?? {}
  if (!tree.map !== !proof.map || (!tree.map && seconds >= mapSince)) return refuse("its proof in the map is missing")
  const place = tree.map && (await mapPlace(proof.map, said, salt, proof.index, leaf))
  if (place) await checkMap(tree, proof.map, place)
  return isInForce(events, key, seconds)
    ? { claims, key, leaf, place, proof, record, tree }
    : refuse(`${key.id} was not in force`)
}
export const verify = async (answer, did) => (await prove(answer, did)).claims
const [, program, ...files] = globalThis.process?.argv ?? []
const read = async (file) => JSON.parse(await (await import("node:fs/promises")).readFile(file, "utf8"))
if (program?.endsWith("verify.mjs")) console.log(await verify(...(await Promise.all(files.map(read)))))
