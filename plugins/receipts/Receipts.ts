// The receipts of settled payments. Each is made from the recorded outcome and the key in force then, which gives the
// same bytes wherever it is made; of an outcome that is not of this moment the stored one is answered first. The log's
// consumer stores them (`log/sequenceOutcomes.ts`), so an answer to a payment writes nothing.
import { Clock, Context, Effect, Fiber, Layer, Option } from "effect"
import { Hex } from "effect/encoding"
import { SqlClient, type SqlError } from "effect/sql"
import { LruCache } from "../../kernel/cache/LruCache.ts"
import { encodeNetwork } from "../../kernel/Dialect.ts"
import { canonicalJson } from "../../kernel/payment/wire/canonicalJson.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import type { SettlementRecord } from "../../kernel/settlement/store/Settlements.ts"
import { attestationSchema, makeAttestation } from "./attestation.ts"
import { claimsOf, recordedAtOf, signClaims } from "./claims.ts"
import { Config, didOf } from "./Config.ts"
import type { Attestation, ReceiptClaims, ReceiptExtension } from "./contract.ts"
import { KeyUnavailable } from "./keys/readSecrets.ts"
import { type KeyInForce, ReceiptKeys } from "./keys/ReceiptKeys.ts"
import { makeReadInTime } from "./readApart.ts"

/** Receipts that are kept for the log's consumer and for repeated answers, about 2 KiB each. */
const keptMax = 2_000
/** How long an outcome is of this moment: nothing older is answered without reading what is stored. */
const freshMillis = 10_000
/**
 * How long an outcome is left to a replica that holds the key of its time, while a rotation reaches one by one; and how
 * long where that key was replaced since, as it is when a rotation is rolled back.
 */
const leftToOthersMillis = 600_000
const leftOfReplacedMillis = 60_000

export interface Receipt {
  /** Compact JWS. */
  readonly jws: string
  /** Canonical JSON of the draft's attestation, where it is on. */
  readonly attestation: string | undefined
}

interface ReceiptRow {
  readonly jws: string
  readonly attestation: string | null
}

const toReceipt = ({ attestation, jws }: ReceiptRow): Receipt => ({ jws, attestation: attestation ?? undefined })

/** No receipt here: a failure while another replica may make it. */
const leftToOthers = ({ kid, validUntil }: KeyInForce, at: number) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    now - at > leftToOthersMillis || (validUntil !== undefined && now - validUntil > leftOfReplacedMillis)
      ? Effect.undefined
      : Effect.fail(new KeyUnavailable({ message: `this replica does not hold ${kid}, the key in force` }))
  )

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

/** Where a receipt is stored. */
export interface Place {
  readonly network: string
  /** 64 hex. */
  readonly transaction: string
}

export class Receipts extends Context.Service<
  Receipts,
  {
    /**
     * Makes the receipt of a settled record. Where this process does not hold the key of its time, another one may: it
     * fails for ten minutes, and then there is none.
     */
    readonly make: (record: SettlementRecord) => Effect.Effect<Receipt | undefined, KeyUnavailable>
    /** The stored receipt of a transaction. */
    readonly stored: (place: Place) => Sql<Option.Option<Receipt>>
    /** The one to answer a success with; an error of its reading leaves the caller's transaction as it was. */
    readonly answer: (
      record: SettlementRecord
    ) => Effect.Effect<Option.Option<Receipt>, SqlError.SqlError | KeyUnavailable>
    /**
     * In the caller's transaction: stores receipts where none is stored yet; returns, in their order, what is stored.
     */
    readonly store: (receipts: ReadonlyArray<Place & { readonly receipt: Receipt }>) => Sql<ReadonlyArray<Receipt>>
  }
>()("tollkeeper/receipts/Receipts") {
  static readonly layer = Layer.effect(
    Receipts,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const crypto = yield* Crypto
      const keys = yield* ReceiptKeys
      const { attestationSecretEnv, host } = yield* Config
      const did = didOf(host ?? "")
      const kept = new LruCache<string, Receipt>({ name: "receipts", capacity: keptMax })
      const readInTime = makeReadInTime(sql)

      const attest = (claims: ReceiptClaims, at: number) => {
        const key = attestationSecretEnv === undefined ? undefined : keys.inForce("attestation", at)
        if (key?.sign === undefined) return Effect.undefined
        const { publicKey, sign } = key
        return Effect.map(makeAttestation(crypto, claims, { publicKey, sign }), canonicalJson)
      }

      const make = Effect.fnUntraced(function* (record: SettlementRecord) {
        const known = kept.get(record.id)
        if (known !== undefined) return known
        const at = recordedAtOf(record)
        const key = keys.inForce("receipt", at)
        const claims = claimsOf(crypto, did, record)
        if (key === undefined || claims === undefined) return undefined
        const { sign } = key
        if (sign === undefined) return yield* leftToOthers(key, at)
        const signing = Effect.gen(function* () {
          const jws = yield* signClaims(claims, `${did}#${key.kid}`, sign)
          const receipt: Receipt = { jws, attestation: yield* attest(claims, at) }
          kept.set(record.id, receipt)
          return receipt
        })
        // An answer that does not wait for another machine leaves it to sign for the log.
        return yield* key.isRemote ? Effect.flatMap(Effect.forkDetach(signing), Fiber.join) : signing
      })

      const stored = ({ network, transaction }: Place) =>
        Effect.map(
          sql<ReceiptRow>`select jws, attestation from receipts_receipts
            where transaction = decode(${transaction}, 'hex') and network = ${network}`,
          ([row]) => Option.map(Option.fromUndefinedOr(row), toReceipt)
        )

      const answer = Effect.fnUntraced(function* (record: SettlementRecord) {
        const isKept = kept.peek(record.id) !== undefined
        const isFresh = Math.abs((yield* Clock.currentTimeMillis) - recordedAtOf(record)) < freshMillis
        const made = Effect.map(make(record), Option.fromUndefinedOr)
        if (isKept || isFresh || Option.isNone(record.transaction)) return yield* made
        const place = { network: encodeNetwork(record.network, "stellar"), transaction: record.transaction.value }
        const found = yield* readInTime(stored(place))
        if (found === undefined) return Option.none<Receipt>()
        return Option.isSome(found) ? found : yield* made
      })

      const store = Effect.fnUntraced(function* (receipts: ReadonlyArray<Place & { readonly receipt: Receipt }>) {
        if (receipts.length === 0) return []
        const rows = receipts.map(({ network, receipt, transaction }) => ({ network, transaction, ...receipt }))
        const given = sql`jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
          as g (network text, transaction text, jws text, attestation text)`
        yield* sql`insert into receipts_receipts (transaction, network, jws, attestation)
          select decode(transaction, 'hex'), network, jws, attestation from ${given} on conflict do nothing`
        const found = yield* sql<ReceiptRow & { transaction: Uint8Array; network: string }>`select r.transaction,
            r.network, r.jws, r.attestation
          from receipts_receipts r join ${given} on r.transaction = decode(g.transaction, 'hex')
            and r.network = g.network`
        const byPlace = new Map(found.map((row) => [`${row.network} ${Hex.encode(row.transaction)}`, toReceipt(row)]))
        return rows.map(({ network, transaction }) => byPlace.get(`${network} ${transaction}`)!)
      })

      return Receipts.of({ make, stored, answer, store })
    })
  )
}

/** The value of `extensions["tollkeeper-receipt"]`. */
export const receiptExtension = ({ jws }: Receipt): ReceiptExtension => ({ info: { format: "jws", receipt: jws } })

/** The value of `extensions["facilitator-attestation"]`. */
export const attestationExtension = ({ attestation }: Receipt) =>
  Option.map(Option.fromUndefinedOr(attestation), (json) => ({
    info: { attestation: JSON.parse(json) as Attestation },
    schema: attestationSchema
  }))
