// Copies every outcome from the journal of facts into the log, in the transaction that moves the cursor: one leaf for
// each fact that ends a settlement, also after a crash and with several replicas. The same transaction stores the
// receipt of a settled payment; the leaf has the receipt's hash.
import { Duration, Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import { joinedBytes } from "../../../kernel/stellar/joinBytes.ts"
import { encodeNetwork } from "../../../kernel/Dialect.ts"
import { type Fact, Facts } from "../../../kernel/facts/Facts.ts"
import { canonicalJson } from "../../../kernel/payment/wire/canonicalJson.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { readSettlementFact, type SettlementFact } from "../../../kernel/settlement/store/facts.ts"
import { type SettlementRecord, Settlements } from "../../../kernel/settlement/store/Settlements.ts"
import { hashText, recordedAtOf } from "../claims.ts"
import { entryKinds, type OutcomeRecord } from "../contract.ts"
import { type Receipt, Receipts } from "../Receipts.ts"
import { Checkpoints } from "./Checkpoints.ts"
import { Epochs } from "./Epochs.ts"
import type { NewLeaf } from "./Tree.ts"

const batchMax = 200
/**
 * Time for which outcomes are collected into one transaction. Payments of one ledger end together, and a proof must be
 * available within 5 s.
 */
const gather = Duration.seconds(1)
const saltBytes = 32
/** Maximum receipts that a remote signer signs concurrently. */
const signingMax = 8

const text = new TextEncoder()

type Hashing = Pick<Crypto["Service"], "randomBytes" | "sha256">

interface Ending {
  readonly fact: Extract<SettlementFact, { readonly _tag: "Ended" }>
  readonly principal: string | null
  /** The current record; undefined if it has been swept. */
  readonly record: SettlementRecord | undefined
}

/** The outcome in a fact; undefined for other facts and for unresolved settlements. */
const endingOf = (fact: Fact): Omit<Ending, "record"> | undefined => {
  const read = Option.getOrUndefined(readSettlementFact(fact))
  return read?._tag === "Ended" && read.state !== "unresolved" ? { fact: read, principal: fact.principal } : undefined
}

/** An outcome's log entry: the commitment to a record with its salt. */
const outcomeEntry = (crypto: Pick<Crypto["Service"], "sha256">, salt: Uint8Array, record: string) =>
  joinedBytes(Uint8Array.of(entryKinds.outcome), crypto.sha256(joinedBytes(salt, text.encode(record))))

const recordOf = (crypto: Hashing, { fact, record }: Ending, receipt: Receipt | undefined): OutcomeRecord => {
  const { by, corrects, feeChargedStroops, ledger, moved, reason, transaction } = fact.data
  return {
    v: 1,
    outcome: fact.state as OutcomeRecord["outcome"],
    ...(by === undefined ? {} : { by }),
    ...(corrects === undefined ? {} : { corrects }),
    settlement: fact.id,
    ...(record === undefined ? {} : { network: encodeNetwork(record.network, "stellar") }),
    transaction,
    ...(moved === null ? {} : { moved: moved.toString() }),
    fee: feeChargedStroops.toString(),
    ...(ledger === null ? {} : { ledger }),
    ...(reason === null ? {} : { reason }),
    at: record === undefined ? fact.at.getTime() : recordedAtOf(record),
    ...(receipt === undefined ? {} : { receipt: hashText(crypto, receipt.jws) }),
    ...(receipt?.attestation === undefined ? {} : { attestation: hashText(crypto, receipt.attestation) })
  }
}

const leafOf = (crypto: Hashing, ending: Ending, receipt: Receipt | undefined): NewLeaf => {
  const salt = crypto.randomBytes(saltBytes)
  const record = canonicalJson(recordOf(crypto, ending, receipt))
  return {
    entry: outcomeEntry(crypto, salt, record),
    outcome: {
      salt,
      record,
      transaction: ending.fact.data.transaction,
      principal: ending.principal ?? ending.record?.principal ?? null,
      payer: ending.record?.payer ?? null,
      payTo: ending.record?.payTo ?? null
    }
  }
}

/** Reads the outcomes in facts, and makes their receipts. */
const makeEndings = Effect.gen(function* () {
  const settlements = yield* Settlements
  const receipts = yield* Receipts

  /** The outcomes in facts, with their settlements' records. */
  const endingsIn = Effect.fnUntraced(function* (batch: ReadonlyArray<Fact>) {
    const endings = batch.flatMap((fact) => endingOf(fact) ?? [])
    if (endings.length === 0) return []
    const records = yield* settlements.byIds([...new Set(endings.map(({ fact }) => fact.id))])
    const byId = new Map(records.map((record) => [record.id, record]))
    return endings.map((ending): Ending => ({ ...ending, record: byId.get(ending.fact.id) }))
  })

  /** The receipts of a batch's settled payments; made before its transaction, which then finds each in the cache. */
  const makeReceipts = Effect.fnUntraced(function* (endings: ReadonlyArray<Ending>) {
    const signed = yield* Effect.forEach(
      endings,
      Effect.fnUntraced(function* ({ fact, record }) {
        const receipt = fact.state === "settled" && record !== undefined ? yield* receipts.make(record) : undefined
        if (receipt === undefined || record === undefined) return []
        const network = encodeNetwork(record.network, "stellar")
        return [{ id: fact.id, network, transaction: fact.data.transaction, receipt }]
      }),
      { concurrency: signingMax }
    )
    return signed.flat()
  })

  return { endingsIn, makeReceipts }
})

export const sequenceOutcomes = Effect.gen(function* () {
  const facts = yield* Facts
  const { endingsIn, makeReceipts } = yield* makeEndings
  const crypto = yield* Crypto
  const epochs = yield* Epochs
  const receipts = yield* Receipts
  const checkpoints = yield* Checkpoints
  const sql = yield* SqlClient.SqlClient

  /** The stored receipts, by settlement. */
  const storeReceipts = Effect.fnUntraced(function* (endings: ReadonlyArray<Ending>) {
    const made = yield* makeReceipts(endings)
    const stored = yield* receipts.store(made)
    return new Map(made.map(({ id }, at) => [id, stored[at]]))
  })

  /** Stores the payer of each channel's deposit: this buyer may read the receipts of the channel's claims. */
  const storeChannels = Effect.fnUntraced(function* (endings: ReadonlyArray<Ending>) {
    const opened = endings.flatMap(({ fact, record }) => {
      const { action, payer } = record ?? {}
      const isDeposit = fact.state === "settled" && action?.kind === "deposit"
      return isDeposit && action.channel !== undefined
        ? [{ channel: action.channel, payer, transaction: fact.data.transaction }]
        : []
    })
    if (opened.length === 0) return
    yield* sql`insert into receipts_channels (channel, payer, transaction)
      select decode(channel, 'hex'), payer, decode(transaction, 'hex')
      from jsonb_to_recordset(${JSON.stringify(opened)}::jsonb) as g (channel text, payer text, transaction text)
      on conflict do nothing`
  })

  yield* facts.consume({
    consumer: "receipts",
    batchMax,
    gather,
    prepare: (batch) => Effect.asVoid(Effect.flatMap(endingsIn(batch), makeReceipts)),
    handle: Effect.fnUntraced(function* (batch) {
      const whole = yield* endingsIn(batch)
      if (whole.length === 0) return
      const stored = yield* storeReceipts(whole)
      yield* storeChannels(whole)
      yield* epochs.append(
        whole.map((ending) =>
          leafOf(crypto, ending, ending.fact.state === "settled" ? stored.get(ending.fact.id) : undefined)
        )
      )
      yield* sql.afterCommit(checkpoints.wake)
    })
  })
})
