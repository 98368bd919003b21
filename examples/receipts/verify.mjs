// Checks receipts on Web Crypto alone: JWS, RFC 8785, RFC 9162, C2SP. `node verify.mjs ANSWER.json did.json` says all.
export const bytesOf = (b64) => Uint8Array.from(atob(b64.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt())
export const hexOf = (bytes) => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("")
const unhex = (hex) => Uint8Array.from(hex?.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16))
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
const keyOf = (x) => crypto.subtle.importKey("raw", bytesOf(x), "Ed25519", false, ["verify"])
const isSigned = async ({ publicKeyJwk: { x } }, signature, text) =>
  crypto.subtle.verify("Ed25519", await keyOf(x), signature, new TextEncoder().encode(text))
export const openReceipt = async (jws, did) => {
  const [header, payload, seal, ...more] = jws.split(".")
  const [{ alg, kid }, claims] = [header, payload].map((part) => JSON.parse(new TextDecoder().decode(bytesOf(part))))
  const key = keysOf(did, "receipt").find(({ id }) => id === kid)
  const isOurs = alg === "EdDSA" && key && !more.length && (await isSigned(key, bytesOf(seal), `${header}.${payload}`))
  const isCanonical = claims.iss === did.id && (await sha256(canonical(claims))) === (await sha256(bytesOf(payload)))
  return isOurs && isCanonical ? { claims, key } : refuse(isOurs ? "not canonical" : `not signed: ${alg}, ${kid}`)
}
export const openCheckpoint = async (note, did) => {
  const form = /^((.+)\n(0|[1-9]\d*)\n(.+)\n(?:.+\n)*)\n(?:.+\n)*?— \2 (\S+)\n/
  const [, body, origin = "", size, root, seal] = form.exec(note) ?? []
  const keys = `did:web:${encodeURIComponent(origin.split("/log")[0])}` === did.id ? keysOf(did, "log") : []
  const valid = await Promise.all(keys.map((key) => isSigned(key, bytesOf(seal).subarray(4), body)))
  return valid.includes(true) ? { origin, size: +size, root: hexOf(bytesOf(root)) } : refuse(`not signed by ${did.id}`)
}
const climb = async (part, size, path, isLeaf) => {
  if (part < 1 || (isLeaf ? size <= 1 : part >= size)) return path.length === 1 ? [path[0], path[0]] : []
  const [left, side, rest] = [2 ** ((size - 1).toString(2).length - 1), path.at(-1), path.slice(0, -1)]
  const [was, is] = await climb(...(part > left ? [part - left, size - left] : [part, left]), rest, isLeaf)
  return part > left ? [await nodeHash(side, was), await nodeHash(side, is)] : [was, await nodeHash(is, side)]
}
export const checkInclusion = async ({ root, size }, index, hash, path) =>
  (index < size && (await climb(index + 1, size, [hash, ...path], true))[1] === root) || refuse("no such leaf")
export const checkConsistency = async (older, newer, path) => {
  const isWhole = older.size === newer.size || Number.isInteger(Math.log2(older.size))
  const [was, is] = await climb(older.size, newer.size, isWhole ? [older.root, ...path] : path)
  return (was === older.root && is === newer.root) || refuse("the newer log does not continue the older")
}
export const prove = async ({ outcomes, receipt }, did) => {
  const [{ claims, key }, name] = [await openReceipt(receipt, did), `sha256:${await sha256(receipt)}`]
  const { proof, record, salt } =
    outcomes.find((one) => one.proof && JSON.parse(one.record).receipt === name) ?? (await refuse("no proof"))
  const leaf = await leafHash(Uint8Array.of(1, ...unhex(await sha256(bytesOf(salt), canonical(JSON.parse(record))))))
  await checkInclusion(await openCheckpoint(proof.checkpoint, did), proof.index, leaf, proof.hashes)
  const at = JSON.parse(record).at / 1000
  return key.validFrom <= at && !(at > key.validUntil) ? { claims, key, leaf, proof, record } : refuse("not in force")
}
export const verify = async (answer, did) => (await prove(answer, did)).claims
const [, program, ...files] = globalThis.process?.argv ?? []
const read = async (file) => JSON.parse(await (await import("node:fs/promises")).readFile(file, "utf8"))
if (program?.endsWith("verify.mjs")) console.log(await verify(...(await Promise.all(files.map(read)))))
