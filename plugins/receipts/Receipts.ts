// The receipts of settled payments. A receipt is a function of the recorded outcome and of the key in force at that
// time, so every replica makes the same bytes. For an outcome older than a few seconds, we answer the stored receipt if
// there is one. The log's consumer stores receipts (`log/sequenceOutcomes.ts`), so an answer to a payment writes
// nothing.
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

/** Receipts cached for the log's consumer and for repeated answers, about 2 KiB each. */
const keptMax = 2_000
/** Maximum age of an outcome that is answered without reading the stored receipt. */
const freshMillis = 10_000
/**
 * While a rotation reaches the replicas one by one, an outcome waits this long for a replica that holds its key. If the
 * key was replaced since, for example when a rotation is rolled back, it waits only the shorter time after that.
 */
const leftToOthersMillis = 600_000
const leftOfReplacedMillis = 60_000

export interface Receipt {
  /** Compact JWS. */
  readonly jws: string
  /** Canonical JSON of the draft's attestation, if attestations are on. */
  readonly attestation: string | undefined
}

interface ReceiptRow {
  readonly jws: string
  readonly attestation: string | null
}

interface StoredRow extends ReceiptRow {
  readonly transaction: Uint8Array
  readonly network: string
}

const toReceipt = ({ attestation, jws }: ReceiptRow): Receipt => ({ jws, attestation: attestation ?? undefined })

/** Fails while another replica may still make the receipt; undefined afterwards. */
const leftToOthers = ({ kid, validUntil }: KeyInForce, at: number) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    now - at > leftToOthersMillis || (validUntil !== undefined && now - validUntil > leftOfReplacedMillis)
      ? Effect.undefined
      : Effect.fail(new KeyUnavailable({ message: `this replica does not hold ${kid}, the key in force` }))
  )

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

/** Key of a stored receipt. */
interface Place {
  readonly network: string
  /** 64 hex. */
  readonly transaction: string
}

export class Receipts extends Context.Service<
  Receipts,
  {
    /**
     * Makes the receipt of a settled record. If this process does not hold the key of that time, another process may:
     * `make` fails for up to ten minutes, and then returns undefined.
     */
    readonly make: (record: SettlementRecord) => Effect.Effect<Receipt | undefined, KeyUnavailable>
    readonly stored: (place: Place) => Sql<Option.Option<Receipt>>
    /** The receipt for a success answer. A failed read does not abort the caller's transaction. */
    readonly answer: (
      record: SettlementRecord
    ) => Effect.Effect<Option.Option<Receipt>, SqlError.SqlError | KeyUnavailable>
    /**
     * In the caller's transaction: stores the receipts that are not stored yet, and returns the stored ones in the
     * given order; undefined if an operator has erased one.
     */
    readonly store: (
      receipts: ReadonlyArray<Place & { readonly receipt: Receipt }>
    ) => Sql<ReadonlyArray<Receipt | undefined>>
  }
>()("tollkeeper/receipts/Receipts") {
  static readonly layer = Layer.effect(
    Receipts,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const crypto = yield* Crypto
      const keys = yield* ReceiptKeys
      const { host, isAttested } = yield* Config
      const did = didOf(host ?? "")
      const kept = new LruCache<string, Receipt>({ name: "receipts", capacity: keptMax })
      const readInTime = makeReadInTime(sql)

      const attest = (claims: ReceiptClaims, at: number) => {
        const key = isAttested ? keys.inForce("attestation", at) : undefined
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
        // Detached: an answer may stop waiting for the remote signer, which still signs for the log.
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
        const rows = JSON.stringify(receipts.map(({ receipt, ...place }) => ({ ...place, ...receipt })))
        const given = sql`jsonb_to_recordset(${rows}::jsonb)
          as g (network text, transaction text, jws text, attestation text)`
        yield* sql`insert into receipts_receipts (transaction, network, jws, attestation)
          select decode(transaction, 'hex'), network, jws, attestation from ${given} where not exists (select 1
            from receipts_leaves where erased_transaction = decode(g.transaction, 'hex')) on conflict do nothing`
        const found = yield* sql<StoredRow>`select r.* from receipts_receipts r
          join ${given} on r.transaction = decode(g.transaction, 'hex') and r.network = g.network`
        const byPlace = new Map(found.map((row) => [`${row.network} ${Hex.encode(row.transaction)}`, toReceipt(row)]))
        return receipts.map(({ network, transaction }) => byPlace.get(`${network} ${transaction}`))
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
