// A receipt with its proof, and forgeries that must be refused: each is a genuine answer with one change, signed and
// proven as well as its forger can. Every published verifier refuses all of them.
import { canonical } from "../../examples/receipts/verify.mjs"
import {
  checkpointOf,
  claimsOf,
  did,
  didDocument,
  jwsOf,
  type Key,
  keyEntryOf,
  levelsOf,
  makeKey,
  methodOf,
  outcomeOf,
  rootOf,
  sha
} from "./receiptLog.ts"

const b64u = (value: string | Uint8Array): string => Buffer.from(value).toString("base64url")

/** The audit path of RFC 9162, computed by its definition. */
const pathOf = (entries: ReadonlyArray<Uint8Array>, index: number): ReadonlyArray<string> => {
  if (entries.length === 1) return []
  let middle = 1
  while (middle * 2 < entries.length) middle *= 2
  const [left, right] = [entries.slice(0, middle), entries.slice(middle)]
  const root = (half: ReadonlyArray<Uint8Array>) => rootOf(levelsOf(half), half.length).toString("hex")
  return index < middle ? [...pathOf(left, index), root(right)] : [...pathOf(right, index - middle), root(left)]
}

export interface Forgery {
  readonly kind: string
  readonly answer: any
  readonly did: any
}

const paidAt = 1_790_000_002

interface Change {
  readonly claims?: object
  readonly payload?: string
  readonly header?: object
  readonly record?: object
  /** The log's key entries before the outcome. */
  readonly keys?: (receipt: Key, log: Key) => ReadonlyArray<Uint8Array>
  readonly proof?: object
  /** Signs the checkpoint in place of the log's key. */
  readonly signer?: Key
  /** Makes the map's line and proof; absent: a log without a map. */
  readonly map?: (place: MapPlace) => { readonly line: string; readonly map?: object }
}

/** The payment's data in the map. */
interface MapPlace {
  readonly index: number
  readonly leaf: Buffer
  readonly salt: string
}

const announced = (receipt: Key, log: Key) => [keyEntryOf("announced", receipt, 0), keyEntryOf("announced", log, 0)]

/** The answer of `GET /receipts/HASH?proof=1` of the second payment. */
const answerOf = (
  receiptKey: Key,
  log: Key,
  { claims, header, keys = announced, map, payload, proof, record, signer }: Change
) => {
  const head = header ?? { alg: "EdDSA", kid: receiptKey.kid, typ: "tollkeeper-receipt+jws" }
  const receipt = jwsOf(receiptKey, payload ?? canonical({ ...claimsOf(2), ...claims }), head)
  const own = outcomeOf(receipt, 2, record)
  const said = keys(receiptKey, log)
  const entries = [...said, own.entry, ...[3, 4, 5].map((n) => outcomeOf("another", n).entry)]
  const shown = said.map((entry, index) => ({
    index,
    entry: Buffer.from(entry).subarray(1).toString(),
    hashes: pathOf(entries, index)
  }))
  const leaf = sha(Buffer.of(0), own.entry)
  const mapped = map?.({ index: said.length, leaf, salt: own.salt })
  const root = rootOf(levelsOf(entries), entries.length)
  return {
    network: "stellar:testnet",
    transaction: claimsOf(2).transaction,
    receipt,
    attestation: null,
    outcomes: [
      {
        record: own.record,
        salt: own.salt,
        proof: {
          epoch: 1,
          origin: "pay.example/log",
          index: said.length,
          size: entries.length,
          leafHash: leaf.toString("hex"),
          hashes: pathOf(entries, said.length),
          keys: shown,
          checkpoint: checkpointOf(signer ?? log, entries.length, root, undefined, undefined, mapped?.line),
          ...(mapped?.map === undefined ? {} : { map: mapped.map }),
          ...proof
        }
      }
    ]
  }
}

const mapSecret = sha("map secret")
const placeOf = ({ index, leaf, salt }: MapPlace, { network, transaction }: any = claimsOf(2)) => ({
  key: sha(mapSecret, `${network}\n${transaction}`),
  value: sha(Buffer.from(salt, "base64url"), `${index}\n`, leaf)
})
type Place = ReturnType<typeof placeOf>
const mapLeaf = ({ key, value }: Place) => sha(Buffer.of(2), key, value)
const b64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64")
const lineOf = (root: Uint8Array): string => `map ${b64(root)} ${b64(sha(mapSecret))}\n`

/** A map of two payments by its definition: a shared prefix of `depth` bits, and the path of the first one. */
const mapOf = (own: Place, other: Place, depth = 0): { root: Buffer; hashes: ReadonlyArray<string> } => {
  const bit = ({ key }: Place) => (key[depth >> 3]! >> (7 - (depth & 7))) & 1
  const isApart = bit(own) !== bit(other)
  const below = isApart ? { root: mapLeaf(own), hashes: [] } : mapOf(own, other, depth + 1)
  const side = isApart ? mapLeaf(other) : Buffer.alloc(32)
  const root = bit(own) === 1 ? sha(Buffer.of(3), side, below.root) : sha(Buffer.of(3), below.root, side)
  return { root, hashes: [...below.hashes, side.toString("hex")] }
}

const another = { ...claimsOf(2), transaction: sha("another").toString("hex") }

/** The map's line and proof; `change` alters the payment's place. */
const mapped =
  (change: (place: Place) => Place = (place) => place, proof: object = {}) =>
  (given: MapPlace) => {
    const { hashes, root } = mapOf(change(placeOf(given)), placeOf(given, another))
    return { line: lineOf(root), map: { secret: b64u(mapSecret), hashes, ...proof } }
  }

/** A JWS with changed unused bits in its last base64url character. */
const otherBits = (jws: string): string => {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
  return jws.slice(0, -1) + letters[letters.indexOf(jws.at(-1)!) ^ 1]
}

const year2100 = 4_102_444_800

const channel = sha("channel").toString("hex")

/** Changes by kind; the leaf commits to the unchanged receipt. */
const changes: Readonly<Record<string, Change>> = {
  "claims of version 2": { claims: { v: 2 } },
  "a negative amount": { claims: { amount: "-5" }, record: { moved: "-5" } },
  "an amount with a leading zero": { claims: { amount: "010000" }, record: { moved: "010000" } },
  "an amount that is a number": { claims: { amount: 10_000 }, record: { moved: 10_000 } },
  "a fraction of an amount": { claims: { amount: "1.5" }, record: { moved: "1.5" } },
  "no payee": { claims: { payTo: undefined }, payload: canonical({ ...claimsOf(2), payTo: "" }) },
  "a negative ledger": { claims: { ledger: -1 }, record: { ledger: -1 } },
  "a transaction that is no hash": { claims: { transaction: "abc" }, record: { transaction: "abc" } },
  "a resource that is no text": { claims: { resource: { url: "x" } } },
  "an action that is no word": { claims: { action: "Claim 2" } },
  "a channel that is no id": { claims: { action: "deposit", channel: "abc" } },
  "a channel without an action": { claims: { channel } },
  "totals without an action": { claims: { totals: { [channel]: "1" } } },
  "totals that are no object": { claims: { action: "claim", totals: channel } },
  "totals of no channel": { claims: { action: "claim", totals: {} } },
  "a total that is a number": { claims: { action: "claim", totals: { [channel]: 1 } } },
  "a negative total": { claims: { action: "claim", totals: { [channel]: "-1" } } },
  "a total of a name": { claims: { action: "claim", totals: { mine: "1" } } },
  "a header without a type": { header: { alg: "EdDSA", kid: "" } },
  "a header of another type": { header: { alg: "EdDSA", kid: "", typ: "JWT" } },
  "a critical member that is unknown": {
    header: { alg: "EdDSA", crit: ["exp"], exp: 1, kid: "", typ: "tollkeeper-receipt+jws" }
  },
  "a key in the header": { header: { alg: "EdDSA", jwk: {}, kid: "", typ: "tollkeeper-receipt+jws" } },
  "a leaf that says failed": { record: { outcome: "failed" } },
  "a leaf that says expired": { record: { outcome: "expired" } },
  "a leaf of another amount": { record: { moved: "1" } },
  "a leaf of no amount": { record: { moved: undefined } },
  "a leaf of another network": { record: { network: "stellar:pubnet" } },
  "a leaf without a network": { record: { network: undefined } },
  "a leaf of another transaction": { record: { transaction: "0".repeat(64) } },
  "a leaf of another ledger": { record: { ledger: 7 } },
  "a leaf of another fee": { record: { fee: "1" } },
  "a leaf of another settlement": { record: { settlement: "another" } },
  "a leaf of another version": { record: { v: 2 } },
  "a ledger that closed in 2100": { claims: { closedAt: year2100 } },
  "a leaf of the year 2100": { claims: { closedAt: year2100 }, record: { at: year2100 * 1_000 } },
  "a leaf before the ledger closed": { record: { at: (paidAt - 86_400) * 1_000 } },
  "a leaf without a time": { record: { at: undefined } },
  "a proof that names another size": { proof: { size: 5 } },
  "a proof that names another log": { proof: { origin: "pay.example/log/2" } },
  "a proof that names another leaf": { proof: { leafHash: "00".repeat(32) } },
  "a proof of a negative index": { proof: { index: -1 } },
  "a map that has another leaf of the payment": { map: mapped(({ key }) => ({ key, value: sha("another leaf") })) },
  "a map that has the leaf in another place": { map: mapped(({ value }) => ({ key: sha("place"), value })) },
  "a map under another secret": { map: mapped(undefined, { secret: b64u(sha("another")) }) },
  "a map without its proof": { map: (given) => ({ line: mapped()(given).line }) },
  "a proof in a map that the checkpoint does not have": { map: (given) => ({ ...mapped()(given), line: "" }) },
  "a path in the map that is too short": { map: mapped(undefined, { hashes: [] }) },
  "a path in the map with a longer hash": { map: mapped(undefined, { hashes: ["00".repeat(64)] }) },
  "two maps in one checkpoint": {
    map: (given) => ({ ...mapped()(given), line: `${mapped()(given).line}${lineOf(sha("another map"))}` })
  },
  "two times in one checkpoint": { map: () => ({ line: `time ${paidAt + 60}\ntime ${paidAt + 90}\n` }) },
  "a checkpoint with a time that is no number": { map: () => ({ line: "time never\n" }) },
  "a checkpoint of the year 2100": { map: () => ({ line: `time ${year2100}\n` }) },
  "a checkpoint from before its leaf": { map: () => ({ line: `time ${paidAt - 86_400}\n` }) },
  "a key that the log announced later": {
    keys: (receipt, log) => [keyEntryOf("announced", log, 0), keyEntryOf("announced", receipt, paidAt + 60)]
  },
  "a key that the log had retired": {
    keys: (receipt, log) => [...announced(receipt, log), keyEntryOf("retired", receipt, paidAt - 60)]
  }
}

const changedNote = (answer: any, change: (note: string) => string) => {
  answer.outcomes[0].proof.checkpoint = change(answer.outcomes[0].proof.checkpoint)
  return answer
}

/** A genuine answer and its document, variants that must pass, and every forgery. */
export const makeForgeries = () => {
  const [receipt, log, former] = [makeKey(did, "receipt"), makeKey(did, "log"), makeKey(did, "log")]
  const document = didDocument(methodOf(receipt), methodOf(log))
  const genuine = () => answerOf(receipt, log, {})
  const headed = ({ header, ...rest }: Change): Change =>
    header === undefined ? rest : { ...rest, header: { ...header, kid: receipt.kid } }
  const made = Object.entries(changes).map(([kind, change]) => ({
    kind,
    answer: answerOf(receipt, log, headed(change)),
    did: document
  }))
  const retired = Math.floor(Date.now() / 1_000) - 60
  const rotated = didDocument(methodOf(receipt), methodOf(former, 0, retired), methodOf(log, retired))
  const since = (mapSince: number) => ({ ...document, service: [{ id: `${did}#log`, mapSince }] })
  const bits = { ...genuine(), receipt: otherBits(genuine().receipt), outcomes: [] }
  const spaced = genuine()
  spaced.outcomes[0]!.record = spaced.outcomes[0]!.record.replace("{", "{ ")
  const later = genuine()
  later.outcomes.push({ ...later.outcomes[0]!, record: outcomeOf(later.receipt, 2, { outcome: "failed" }).record })
  const line = /\n(— pay\.example\/log )(\S+)\n$/
  const notes: ReadonlyArray<readonly [string, (note: string) => string]> = [
    [
      "a corrupt line of a known key beside its own",
      (note) => `${note}${note.match(line)![1]}${note.match(line)![2]!.slice(0, -6)}AAAA==\n`
    ],
    [
      "a line under another key's id",
      (note) =>
        note.replace(
          line,
          (_, name, seal) =>
            `\n${name}${Buffer.concat([Buffer.alloc(4), Buffer.from(seal, "base64").subarray(4)]).toString("base64")}\n`
        )
    ],
    ["a log of another name on the host", (note) => note.replaceAll("pay.example/log", "pay.example/logs")],
    ["text after the checkpoint's lines", (note) => `${note}more`],
    ["a checkpoint with carriage returns", (note) => note.replaceAll("\n", "\r\n")]
  ]
  const forgeries: ReadonlyArray<Forgery> = [
    ...made,
    { kind: "other trailing bits", answer: bits, did: document },
    { kind: "a record in another spelling", answer: spaced, did: document },
    { kind: "a later leaf that says failed", answer: later, did: document },
    { kind: "a checkpoint under a retired key of the log", answer: answerOf(receipt, former, {}), did: rotated },
    { kind: "a log whose map was left out", answer: genuine(), did: since(paidAt) },
    {
      kind: "a checkpoint under no key of the log",
      answer: answerOf(receipt, log, { signer: receipt }),
      did: document
    },
    ...notes.map(([kind, change]) => ({ kind, answer: changedNote(genuine(), change), did: document }))
  ]
  const repudiated = didDocument(methodOf(receipt, 0, paidAt - 60), methodOf(log))
  const passing: ReadonlyArray<Forgery> = [
    { kind: "genuine", answer: genuine(), did: document },
    {
      kind: "genuine, under a checkpoint of that day",
      answer: answerOf(receipt, log, { map: () => ({ line: `time ${paidAt + 60}\n` }) }),
      did: document
    },
    { kind: "genuine, in a map", answer: answerOf(receipt, log, { map: mapped() }), did: since(paidAt) },
    ...[
      { scheme: "upto" },
      { scheme: "batch-settlement", action: "deposit", channel },
      { scheme: "batch-settlement", action: "claim", totals: { [channel]: "20000", ["0".repeat(64)]: "0" } },
      { scheme: "batch-settlement", action: "refund", channel, totals: { [channel]: "20000" } }
    ].map((claims) => ({
      kind: `genuine, of ${claims.scheme} ${claims.action ?? ""}`.trim(),
      answer: answerOf(receipt, log, { claims, map: mapped() }),
      did: since(paidAt)
    })),
    { kind: "genuine, from before there was a map", answer: genuine(), did: since(paidAt + 60) },
    { kind: "a document that retires the key before", answer: genuine(), did: repudiated },
    { kind: "a document that lost the key", answer: genuine(), did: didDocument(methodOf(log)) },
    {
      kind: "a document with another key under the name",
      answer: genuine(),
      did: didDocument({ ...methodOf(makeKey(did, "receipt")), id: receipt.kid }, methodOf(log))
    },
    {
      kind: "a key that was reinstated",
      answer: answerOf(receipt, log, {
        keys: (key, log) => [
          ...announced(key, log),
          keyEntryOf("retired", key, paidAt - 120),
          keyEntryOf("announced", key, paidAt - 60)
        ]
      }),
      did: repudiated
    },
    {
      kind: "a line of an unknown key",
      answer: changedNote(
        genuine(),
        (note) => `${note}— witness.example ${b64u(Buffer.alloc(75)).replace(/[-_]/g, "A")}\n`
      ),
      did: document
    }
  ]
  return { forgeries, passing }
}
