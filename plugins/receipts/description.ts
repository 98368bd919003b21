// Declares the receipts routes with the Schemas of `ReceiptWire.ts`.
import { Schema } from "effect"
import { answers, at, type Documented, errors as described, type RouteGroup } from "../../kernel/http/Route.ts"
import { anything, text } from "../../kernel/http/wireSchema.ts"
import {
  ChallengeAnswered,
  ChallengeAsked,
  ChallengeMade,
  EpochsShown,
  ReceiptError,
  ReceiptShown
} from "./ReceiptWire.ts"

const errors = (descriptions: Readonly<Record<number, string>>) => described(descriptions, ReceiptError)

const open = { exposure: "public", callers: "public" } as const
const common = { 429: "Too many reads of one caller; see Retry-After.", 503: "The database is unavailable." }
const hash = Schema.Struct({ hash: text("64 hex digits of the transaction.") })
const proof = Schema.Struct({ proof: Schema.optionalKey(text("`1` adds the proofs of inclusion.")) })
const shown = { description: "The receipt and the outcomes.", body: ReceiptShown }
const note = { description: "A signed note.", body: Schema.String, mediaType: "text/plain" }
const bytes = { description: "Hashes, or entries.", body: Schema.String, mediaType: "application/octet-stream" }
const epoch = { epoch: text("Name of the epoch; 1 for the first.") }
const tilePart = { tile: text("`LEVEL/P` or `entries/P`, and `.p/W` for a partial one (C2SP tlog-tiles).") }

export const receipt = {
  ...at("GET", "/receipts/:hash", "receipt"),
  summary: "The receipt of a transaction that the caller settled.",
  callers: "keyed",
  cost: { cpuMillis: 15, bytesOut: 65_536, statements: 14 },
  inPath: hash,
  query: proof,
  answers: {
    200: shown,
    ...errors({ 400: "No hash.", 401: "A key is required.", 404: "Unknown, or another's.", ...common })
  }
} satisfies Documented

export const challenge = {
  ...at("POST", "/receipts/challenge", "receiptChallenge"),
  summary: "A challenge for payer or payTo of a payment to sign.",
  callers: "public",
  cost: { cpuMillis: 10, bytesOut: 4_096, statements: 2, rpcCalls: 2 },
  body: ChallengeAsked,
  answers: answers(
    "The challenge.",
    ChallengeMade,
    { 400: "No account.", 403: "The host is not configured.", ...common },
    ReceiptError
  )
} satisfies Documented

export const account = {
  ...at("POST", "/receipts/:hash", "receiptOfAccount"),
  summary: "The receipt of a transaction, for its payer or payTo.",
  callers: "public",
  cost: { cpuMillis: 15, bytesOut: 65_536, statements: 16, rpcCalls: 2 },
  inPath: hash,
  query: proof,
  body: ChallengeAnswered,
  answers: {
    200: shown,
    ...errors({
      400: "No hash, or no answer.",
      403: "Not signed, or the host is not configured.",
      404: "Unknown, or another's.",
      ...common
    })
  }
} satisfies Documented

export const did = {
  ...at("GET", "/.well-known/did.json", "did"),
  summary: "The DID document: every key that ever signed, with its times.",
  ...open,
  cost: { cpuMillis: 5, bytesOut: 65_536 },
  answers: { 200: { description: "The document.", body: anything("DID document.") } }
} satisfies Documented

export const checkpoint = {
  ...at("GET", "/log/checkpoint", "logCheckpoint"),
  summary: "The newest checkpoint of the first epoch.",
  ...open,
  cost: { cpuMillis: 5, bytesOut: 4_096, statements: 1 },
  answers: { 200: note, ...errors({ 404: "None yet.", ...common }) }
} satisfies Documented

export const epochCheckpoint = {
  ...at("GET", "/log/:epoch/checkpoint", "logEpochCheckpoint"),
  summary: "The newest checkpoint of an epoch.",
  ...open,
  cost: { cpuMillis: 5, bytesOut: 4_096, statements: 2 },
  inPath: Schema.Struct(epoch),
  answers: { 200: note, ...errors({ 404: "No such epoch.", ...common }) }
} satisfies Documented

export const tile = {
  ...at("GET", "/log/tile/*", "logTile"),
  summary: "A tile, or a bundle of entries, of the first epoch.",
  ...open,
  cost: { cpuMillis: 5, bytesOut: 524_288, statements: 2 },
  inPath: Schema.Struct(tilePart),
  answers: { 200: bytes, ...errors({ 404: "Not there yet.", ...common }) }
} satisfies Documented

export const epochTile = {
  ...at("GET", "/log/:epoch/tile/*", "logEpochTile"),
  summary: "A tile, or a bundle of entries, of an epoch.",
  ...open,
  cost: { cpuMillis: 5, bytesOut: 524_288, statements: 3 },
  inPath: Schema.Struct({ ...epoch, ...tilePart }),
  answers: { 200: bytes, ...errors({ 404: "Not there yet.", ...common }) }
} satisfies Documented

export const epochs = {
  ...at("GET", "/log/epochs", "logEpochs"),
  summary: "The epochs of the log, and why each began.",
  ...open,
  cost: { cpuMillis: 5, bytesOut: 65_536, statements: 4 },
  answers: answers("Oldest first.", EpochsShown, common, ReceiptError)
} satisfies Documented

export const group: RouteGroup = {
  tag: "receipts",
  about: "Signed receipts of settled payments, and the log of every outcome."
}
