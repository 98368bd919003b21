// Random JSON-RPC requests near valid ones: a real request of each method, changed in one to four places. Base64 texts
// are changed in their bytes, so that they decode to nearly valid XDR.
import type { Dice } from "./Dice.ts"

export interface Request {
  readonly jsonrpc: string
  readonly id: unknown
  readonly method: string
  readonly params?: unknown
}

/** Items of a ledger that valid requests refer to. */
export interface LedgerSample {
  readonly envelopes: ReadonlyArray<string>
  readonly hashes: ReadonlyArray<string>
  readonly keys: ReadonlyArray<string>
  readonly contracts: ReadonlyArray<string>
  /** Contract values in base64, as topics have them. */
  readonly values: ReadonlyArray<string>
  readonly latest: number
}

type Make = (known: LedgerSample, dice: Dice) => object

const paging = (known: LedgerSample, dice: Dice): object => ({
  startLedger: known.latest - dice.below(8),
  pagination: { limit: 1 + dice.below(20) }
})

/** A real request's parameters, by method. */
export const methods: ReadonlyMap<string, Make> = new Map<string, Make>([
  ["getHealth", () => ({})],
  ["getNetwork", () => ({})],
  ["getLatestLedger", () => ({})],
  ["getVersionInfo", () => ({})],
  ["getFeeStats", () => ({})],
  ["getLedgerEntries", ({ keys }, dice) => ({ keys: keys.slice(dice.below(keys.length)) })],
  [
    "simulateTransaction",
    ({ envelopes }, dice) => ({
      transaction: dice.pick(envelopes),
      resourceConfig: { instructionLeeway: dice.below(1_000_000) },
      authMode: dice.pick(["enforce", "record", "record_allow_nonroot"])
    })
  ],
  ["sendTransaction", ({ envelopes }, dice) => ({ transaction: dice.pick(envelopes) })],
  ["getTransaction", ({ hashes }, dice) => ({ hash: dice.pick(hashes) })],
  ["getTransactions", paging],
  ["getLedgers", paging],
  [
    "getEvents",
    (known, dice) => ({
      ...paging(known, dice),
      endLedger: known.latest,
      filters: [
        {
          type: dice.pick(["contract", "system", "contract,system"]),
          contractIds: [dice.pick(known.contracts)],
          topics: [[dice.pick(known.values), "*"], ["**"]]
        }
      ]
    })
  ]
])

/** Values with a type that no parameter has, or at the limit of one. */
const odd: ReadonlyArray<unknown> = [
  ...[null, true, false, 0, -1, 1.5, 4_294_967_295, 4_294_967_296, Number.MAX_SAFE_INTEGER, 1e308, -0],
  ...["", "0", "-1", "abc", "now", "*", "**", "\u0000", "\ud800", "json", "base64", "A".repeat(5_000)],
  ...["AAAA", "18446744073709551615", "9223372036854775807-1", "0x10", "é", "🙂", "__proto__", "constructor"],
  ...[[], {}, [[]], [null], [{}], { length: 1 }]
]

const deep = (depth: number): unknown => {
  let value: unknown = []
  for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { a: value }
  return value
}

const isBase64 = (text: string): boolean => text.length >= 8 && /^[A-Za-z0-9+/]+={0,2}$/.test(text)

/** The bytes with some changed, removed, added, or moved. */
const changedBytes = (bytes: Buffer, dice: Dice): Buffer => {
  const changed = Buffer.from(bytes)
  const at = () => dice.below(Math.max(changed.length, 1))
  switch (dice.below(5)) {
    case 0:
      for (let i = 0; i <= dice.below(4); i++) changed[at()]! ^= 1 << dice.below(8)
      return changed
    case 1:
      return changed.subarray(0, at())
    case 2:
      return Buffer.concat([changed, Buffer.alloc(1 + dice.below(16), dice.below(256))])
    case 3: {
      // Lengths and discriminants are whole words.
      const word = Math.min(at() & ~3, Math.max(changed.length - 4, 0))
      if (changed.length >= 4) changed.writeInt32BE(Number(BigInt.asIntN(32, dice.edgy())), word)
      return changed
    }
    default: {
      const [from, to] = [at(), at()]
      return Buffer.concat([changed.subarray(0, to), changed.subarray(from)])
    }
  }
}

const changedText = (text: string, dice: Dice): string => {
  if (isBase64(text) && !dice.onceIn(4)) return changedBytes(Buffer.from(text, "base64"), dice).toString("base64")
  const at = dice.below(text.length + 1)
  switch (dice.below(4)) {
    case 0:
      return text.slice(0, at)
    case 1:
      return text.slice(0, at) + String(dice.pick(odd)) + text.slice(at)
    case 2:
      return text.repeat(1 + dice.below(3))
    default:
      return text.toUpperCase()
  }
}

/** The value, changed in one place. */
const changed = (value: unknown, dice: Dice): unknown => {
  if (dice.onceIn(6)) return dice.onceIn(12) ? deep(1 + dice.below(2_000)) : dice.pick(odd)
  if (typeof value === "string") return changedText(value, dice)
  if (typeof value === "number") return dice.onceIn(2) ? value + dice.below(40) - 20 : Number(dice.edgy())
  if (Array.isArray(value)) {
    const at = dice.below(value.length + 1)
    if (dice.onceIn(6)) return Array.from({ length: dice.below(300) }, () => value[0])
    if (dice.onceIn(4) || at === value.length) return [...value.slice(0, at), dice.pick(odd), ...value.slice(at)]
    return value.with(at, changed(value[at], dice))
  }
  if (typeof value !== "object" || value === null) return dice.pick(odd)
  const entries = Object.entries(value)
  const at = dice.below(entries.length + 1)
  if (at === entries.length) {
    const name = dice.pick(["xdrFormat", "__proto__", "constructor", "limit", "cursor", "endLedger", "x"])
    return Object.fromEntries([...entries, [name, dice.pick(odd)]])
  }
  if (dice.onceIn(6)) return Object.fromEntries(entries.toSpliced(at, 1))
  return Object.fromEntries(entries.with(at, [entries[at]![0], changed(entries[at]![1], dice)]))
}

/** A request; one in eight is valid. */
export const rpcRequest = (known: LedgerSample, dice: Dice): unknown => {
  const [method, make] = dice.pick([...methods])
  let params: unknown = make(known, dice)
  if (dice.onceIn(4)) params = { ...(params as object), xdrFormat: dice.pick(["json", "base64"]) }
  if (!dice.onceIn(8)) for (let i = 0; i <= dice.below(4); i++) params = changed(params, dice)
  const request: Request = { jsonrpc: "2.0", id: dice.onceIn(16) ? dice.pick(odd) : 1, method, params }
  return dice.onceIn(40) ? changed(request, dice) : request
}
