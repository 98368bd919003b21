// The routes of receipts for /openapi.json, by the Schemas of `ReceiptWire.ts`.
import { Schema } from "effect"
import type { Described, RouteDescription } from "../../kernel/http/OpenApi.ts"
import { anything, text, whole } from "../../kernel/http/wireSchema.ts"
import {
  ChallengeAnswered,
  ChallengeAsked,
  ChallengeMade,
  EpochsShown,
  ReceiptError,
  ReceiptShown
} from "./ReceiptWire.ts"

const errors = (words: Readonly<Record<number, string>>): RouteDescription["answers"] =>
  Object.fromEntries(
    Object.entries(words).map(([status, description]) => [status, { description, body: ReceiptError }])
  )

const common = { 429: "Too many reads of one caller; see Retry-After.", 503: "The database is unavailable." }
const hash = Schema.Struct({ hash: text("64 hex digits of the transaction.") })
const proof = Schema.Struct({ proof: Schema.optionalKey(text("`1` adds the proofs of inclusion.")) })
const shown = { description: "The receipt and the outcomes.", body: ReceiptShown }
const note = { description: "A signed note.", body: Schema.String, mediaType: "text/plain" }
const bytes = { description: "Hashes, or entries.", body: Schema.String, mediaType: "application/octet-stream" }
const epoch = { epoch: whole("Epoch, from 1.") }
const tile = { tile: text("`LEVEL/P` or `entries/P`, and `.p/W` for a partial one (C2SP tlog-tiles).") }

const receipts: ReadonlyArray<RouteDescription> = [
  {
    method: "get",
    path: "/receipts/{hash}",
    id: "receipt",
    summary: "The receipt of a transaction that the caller settled.",
    tag: "receipts",
    callers: "keyed",
    inPath: hash,
    query: proof,
    answers: {
      200: shown,
      ...errors({ 400: "No hash.", 401: "A key is required.", 404: "Unknown, or another's.", ...common })
    }
  },
  {
    method: "post",
    path: "/receipts/challenge",
    id: "receiptChallenge",
    summary: "A challenge for payer or payTo of a payment to sign.",
    tag: "receipts",
    callers: "public",
    body: ChallengeAsked,
    answers: {
      200: { description: "The challenge.", body: ChallengeMade },
      ...errors({ 400: "No account.", ...common })
    }
  },
  {
    method: "post",
    path: "/receipts/{hash}",
    id: "receiptOfAccount",
    summary: "The receipt of a transaction, for its payer or payTo.",
    tag: "receipts",
    callers: "public",
    inPath: hash,
    query: proof,
    body: ChallengeAnswered,
    answers: {
      200: shown,
      ...errors({ 400: "No hash, or no answer.", 403: "Not signed.", 404: "Unknown, or another's.", ...common })
    }
  },
  {
    method: "get",
    path: "/.well-known/did.json",
    id: "did",
    summary: "The DID document: every key that ever signed, with its times.",
    tag: "receipts",
    callers: "public",
    answers: { 200: { description: "The document.", body: anything("DID document.") } }
  }
]

const log: ReadonlyArray<RouteDescription> = [
  {
    method: "get",
    path: "/log/checkpoint",
    id: "logCheckpoint",
    summary: "The newest checkpoint of the current epoch.",
    tag: "receipts",
    callers: "public",
    answers: { 200: note, ...errors({ 404: "None yet.", ...common }) }
  },
  {
    method: "get",
    path: "/log/{epoch}/checkpoint",
    id: "logEpochCheckpoint",
    summary: "The newest checkpoint of an epoch.",
    tag: "receipts",
    callers: "public",
    inPath: Schema.Struct(epoch),
    answers: { 200: note, ...errors({ 404: "No such epoch.", ...common }) }
  },
  {
    method: "get",
    path: "/log/tile/{tile}",
    id: "logTile",
    summary: "A tile, or a bundle of entries, of the first epoch.",
    tag: "receipts",
    callers: "public",
    inPath: Schema.Struct(tile),
    answers: { 200: bytes, ...errors({ 404: "Not there yet.", ...common }) }
  },
  {
    method: "get",
    path: "/log/{epoch}/tile/{tile}",
    id: "logEpochTile",
    summary: "A tile, or a bundle of entries, of an epoch.",
    tag: "receipts",
    callers: "public",
    inPath: Schema.Struct({ ...epoch, ...tile }),
    answers: { 200: bytes, ...errors({ 404: "Not there yet.", ...common }) }
  },
  {
    method: "get",
    path: "/log/epochs",
    id: "logEpochs",
    summary: "The epochs of the log, and why each began.",
    tag: "receipts",
    callers: "public",
    answers: { 200: { description: "Oldest first.", body: EpochsShown }, ...errors(common) }
  }
]

export const described: Described = {
  tags: { receipts: "Signed receipts of settled payments, and the log of every outcome." },
  routes: [...receipts, ...log]
}
