// A facilitator's keys, receipts and log, made from `plugins/receipts/README.md` without the plugin's code; only
// canonical JSON and tile paths come from the published checkers. We test these checkers with them and build attacks
// from them.
import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto"
import { mkdir, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { canonical } from "../../examples/receipts/verify.mjs"
import { tilePath } from "../../examples/receipts/tiles.mjs"

export const sha = (...parts: ReadonlyArray<string | Uint8Array>): Buffer => {
  const hash = createHash("sha256")
  for (const part of parts) hash.update(part)
  return hash.digest()
}
const b64u = (value: string | Uint8Array): string => Buffer.from(value).toString("base64url")

export interface Key {
  readonly kid: string
  readonly publicKey: Buffer
  readonly privateKey: KeyObject
}

/** An Ed25519 key with its name from did.json. */
export const makeKey = (did: string, use: "receipt" | "log"): Key => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519")
  const raw = Buffer.from(publicKey.export({ format: "jwk" }).x!, "base64url")
  return { kid: `${did}#${use}-${sha(raw).toString("hex").slice(0, 16)}`, publicKey: raw, privateKey }
}

export const methodOf = ({ kid, publicKey }: Key, validFrom = 0, validUntil?: number) => ({
  id: kid,
  type: "JsonWebKey2020",
  publicKeyJwk: { kty: "OKP", crv: "Ed25519", x: b64u(publicKey), alg: "EdDSA" },
  validFrom,
  ...(validUntil === undefined ? {} : { validUntil })
})

export const host = "pay.example"
export const did = `did:web:${host}`

export const didDocument = (...methods: ReadonlyArray<ReturnType<typeof methodOf>>) => ({
  id: did,
  verificationMethod: methods
})

export const claimsOf = (n: number) => ({
  v: 1,
  iss: did,
  network: "stellar:testnet",
  transaction: sha(`transaction ${n}`).toString("hex"),
  ledger: 1_000 + n,
  closedAt: 1_790_000_000 + n,
  payer: `GPAYER${n}`,
  payTo: "GSELLER",
  asset: "CASSET",
  amount: "10000",
  scheme: "exact",
  settlement: `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`,
  attempts: 1,
  fee: "100",
  resource: "https://seller.example/weather"
})

/** A compact JWS; attacks may change `header` and the payload's text. */
export const jwsOf = (
  key: Key,
  payload: string,
  header: object = { alg: "EdDSA", kid: key.kid, typ: "tollkeeper-receipt+jws" }
): string => {
  const signed = `${b64u(JSON.stringify(header))}.${b64u(payload)}`
  return `${signed}.${b64u(sign(null, Buffer.from(signed), key.privateKey))}`
}

export const receiptOf = (key: Key, n: number): string => jwsOf(key, canonical(claimsOf(n)))

/** The opened leaf of a receipt, and the entry of the log. */
export const outcomeOf = (receipt: string, n: number, change: object = {}) => {
  const { amount, fee, ledger, network, settlement, transaction } = claimsOf(n)
  const said = {
    v: 1,
    outcome: "settled",
    settlement,
    network,
    transaction,
    moved: amount,
    ledger,
    fee,
    at: 1_790_000_000_000 + n * 1000,
    receipt: `sha256:${sha(receipt).toString("hex")}`,
    ...change
  }
  const record = canonical(Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined)))
  const salt = sha(`salt ${n}`)
  return { record, salt: b64u(salt), entry: Buffer.concat([Buffer.of(1), sha(salt, record)]) }
}

/** An entry of a key's history. */
export const keyEntryOf = (event: "announced" | "retired", { kid, publicKey }: Key, at: number): Buffer => {
  const use = kid.split("#")[1]!.split("-")[0]
  return Buffer.concat([Buffer.of(2), Buffer.from(canonical({ event, kid, publicKey: b64u(publicKey), use, at }))])
}

/** All levels of complete nodes over entries, as buffers without hex: `levels[h][i]`. */
export const levelsOf = (entries: ReadonlyArray<Uint8Array>): ReadonlyArray<ReadonlyArray<Buffer>> => {
  const levels = [entries.map((entry) => sha(Buffer.of(0), entry))]
  while (levels.at(-1)!.length > 1) {
    const below = levels.at(-1)!
    levels.push(
      Array.from({ length: below.length >> 1 }, (_, i) => sha(Buffer.of(1), below[2 * i]!, below[2 * i + 1]!))
    )
  }
  return levels
}

/** Root by the definition of RFC 9162, over complete nodes. */
export const rootOf = (levels: ReadonlyArray<ReadonlyArray<Buffer>>, size: number): Buffer => {
  if (size === 0) return sha()
  let root: Buffer | undefined
  for (let height = 0, left = size; left > 0; height++, left = Math.floor(left / 2)) {
    if (left % 2 === 0) continue
    const node = levels[height]![left - 1]!
    root = root === undefined ? node : sha(Buffer.of(1), node, root)
  }
  return root!
}

/** A note: this body, then its signature. */
export const noteOf = (key: Key, body: string, name = `${host}/log`): string => {
  const id = sha(`${name}\n`, Buffer.of(1), key.publicKey).subarray(0, 4)
  const signature = Buffer.concat([id, sign(null, Buffer.from(body), key.privateKey)])
  return `${body}\n— ${name} ${signature.toString("base64")}\n`
}

/** A checkpoint's note, with a signature by `name`; `lines` follow its own. */
export const checkpointOf = (
  key: Key,
  size: number,
  root: Uint8Array,
  origin = `${host}/log`,
  name = origin,
  lines = `time ${Math.floor(Date.now() / 1_000)}\n`
): string => noteOf(key, `${origin}\n${size}\n${Buffer.from(root).toString("base64")}\n${lines}`, name)

/** Writes a log in its download format: its checkpoint, tiles and entries. */
export const writeLog = async (
  folder: string,
  key: Key,
  entries: ReadonlyArray<Uint8Array>,
  origin = `${host}/log`
): Promise<string> => {
  const put = async (path: string, bytes: string | Uint8Array) => {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), bytes)
  }
  const levels = levelsOf(entries)
  for (let height = 0; height < levels.length; height += 8) {
    const hashes = levels[height]!
    for (let from = 0; from < hashes.length; from += 256) {
      const slice = hashes.slice(from, from + 256)
      await put(tilePath(height / 8, from / 256, slice.length), Buffer.concat(slice))
    }
  }
  for (let from = 0; from < entries.length; from += 256) {
    const slice = entries.slice(from, from + 256)
    const bundle = slice.flatMap((entry) => [Buffer.of(entry.length >> 8, entry.length & 255), entry])
    await put(tilePath("entries", from / 256, slice.length), Buffer.concat(bundle))
  }
  const note = checkpointOf(key, entries.length, rootOf(levels, entries.length), origin)
  await put("checkpoint", note)
  return note
}
