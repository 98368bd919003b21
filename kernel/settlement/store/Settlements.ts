// The repository of settlements, as a port: an SQL implementation serves the process, an in-memory twin the simulation.
// Guarantees: recording is one transaction that stores either everything (envelope, hold on the channel, budget, fact)
// or nothing. An authorization always belongs to the same settlement, and so does an identifier of one owner, payTo and
// payer. Only an open settlement is resolved, and only once.
import { Context, type Effect, Option } from "effect"
import type { SqlError } from "effect/sql"
import type { NetworkId } from "../../config/Network.ts"
import type { Principal } from "../../http/Authentication.ts"
import type { ChannelLease } from "../channels/ChannelStore.ts"
import type { Attempt, OpenSettlement, Outcome } from "../state/Settlement.ts"
import type { recordColumns, SettledAction } from "./recordColumns.ts"

/** Lookup keys for an earlier settlement of the same payment. */
export interface FindQuery {
  readonly network: NetworkId
  readonly scheme: string
  readonly authorizationKey: Option.Option<string>
  /** The owner. We search an identifier only among its payments, and an authorization among all payments. */
  readonly principal: string
  readonly payTo: string
  /** The payer of the authorization, by the payload; without it no identifier is searched. */
  readonly payer: Option.Option<string>
  readonly identifier: Option.Option<string>
}

/** A settlement as lookups, events and callers see it. */
export interface SettlementRecord extends ReturnType<typeof recordColumns.decode> {}

/** A failed settlement with an authorization that may still be used. */
export interface WatchedRecord extends SettlementRecord {
  /** The ledger at which it was seen unspent. */
  readonly watchAfter: number
}

/** The correction of a failed settlement after a later use of its authorization. */
export interface Correction {
  readonly state: "settled" | "failed"
  /** The transaction that used it, by its inner hash. */
  readonly transaction: string
  readonly ledger: number
  readonly closedAtSeconds: number
  readonly moved: bigint | undefined
  readonly reason: "settle_ledger_authorization_spent" | undefined
  readonly message: string | undefined
  readonly confirmations: 1 | 2
}

/** A process's claim of a success for one caller, with a claim number. */
export interface DeliveryClaim {
  readonly id: string
  readonly process: string
  readonly claim: bigint
}

/** The end of sending a claimed success: the answer left, or its connection was closed before. */
export interface DeliveryEnd extends DeliveryClaim {
  readonly hasLeft: boolean
}

/** A process's record of a success that it delivered. */
export interface KnownDelivery {
  readonly network: NetworkId
  readonly scheme: string
  readonly authorizationKey: string
  readonly principal: string
  readonly key: string | undefined
}

/** Fields recorded for every settlement, new or adopted. */
export interface SettlementTerms {
  readonly id: string
  readonly network: NetworkId
  readonly scheme: string
  readonly authorizationKey: string
  readonly authorizationExpiresLedger: number
  readonly fingerprint: string
  readonly principal: Principal
  readonly identifier: Option.Option<string>
  readonly payer: string
  readonly payTo: string
  readonly asset: string
  readonly amount: bigint
  readonly resourceUrl: Option.Option<string>
  readonly innerHash: string
  readonly sponsor: string
  readonly resourceFeeStroops: bigint
}

/** Accounting category if it is not a direct payment: a deposit sells nothing, a claim of many does. */
export interface Books extends SettledAction {
  /** The amount sold once it is settled, atomic units. */
  readonly sold: bigint
}

export interface NewSettlement extends SettlementTerms {
  readonly books?: Books | undefined
  readonly amountMax: bigint
  readonly channel: { readonly address: string; readonly fence: bigint; readonly sequence: bigint }
  readonly recordedLedger: number
  /** Unix milliseconds until which the first caller waits. */
  readonly deadlineAt: number
  /** The maximum cost of the transaction to the sponsor: reserved now. */
  readonly budgetStroops: bigint
  readonly attempt: NewAttempt
  /** Times of the steps before the record, Unix milliseconds of this process. */
  readonly steps?: { readonly askedAt: number; readonly verifiedAt: number; readonly leasedAt: number }
  readonly traceparent?: string | undefined
}

/** An RPC node's answer to a sent attempt; `Lost` without a usable answer. */
export interface SentNote {
  readonly status: NonNullable<Attempt["sentStatus"]>
  /** The result code of a refusal. */
  readonly code: string | undefined
  /** The newest ledger at that time. */
  readonly ledger: number
  /** The attempt's hash: a database that lost its last commits assigns the numbers of attempts again. */
  readonly outerHash?: string
}

export interface NewAttempt {
  readonly kind: "payment" | "cancel"
  readonly innerHash: string
  readonly outerHash: string
  readonly envelope: string
  readonly inclusionStroops: bigint
  readonly recordedLedger: number
}

export type RecordAnswer =
  | { readonly _tag: "Recorded" }
  /** The authorization, or the identifier, belongs to a settlement already. */
  | { readonly _tag: "Known" }
  /** Another holder took the lease. */
  | { readonly _tag: "FenceLost" }
  | { readonly _tag: "BudgetExceeded" }
  | { readonly _tag: "TooManyOpen" }

export interface OpenRecord extends SettlementRecord, OpenSettlement {
  readonly identifier: Option.Option<string>
  readonly sponsor: string
  readonly resourceFeeStroops: bigint
  readonly attempts: ReadonlyArray<Attempt>
  /** The number of attempts at the read, void ones included; each change names it as its precondition. */
  readonly attemptCount: number
}

/** Result of ending a settlement. */
export type ResolveAnswer =
  | { readonly _tag: "Resolved"; readonly record: SettlementRecord }
  /** It has already ended, or an attempt was added since the read: the decision may be stale. */
  | { readonly _tag: "Changed" }
  /** The transaction already ended another settlement. */
  | { readonly _tag: "TransactionTaken" }

export type AdoptAnswer = "Adopted" | "Known" | "TransactionTaken"

/** A settlement found on the ledger after its record was lost: recorded and ended in one statement. */
export interface AdoptedSettlement extends SettlementTerms {
  readonly outerHash: string
  readonly envelope: string
  readonly channel: string
  readonly channelSequence: bigint
  readonly inclusionStroops: bigint
  readonly ledger: number
  readonly closedAtSeconds: number
  readonly feeChargedStroops: bigint
  readonly amountTransferred: bigint
  /** The number of endpoints that showed it. */
  readonly confirmations?: 1 | 2
}

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

export class Settlements extends Context.Service<
  Settlements,
  {
    /** At most two: by authorization and by identifier. One read. */
    readonly find: (query: FindQuery) => Sql<ReadonlyArray<SettlementRecord>>
    readonly record: (settlement: NewSettlement) => Sql<RecordAnswer>
    /**
     * Adds an attempt to an open settlement before it is sent, and returns its number. Returns undefined if the
     * settlement is no longer open, or has attempts that the decision did not consider.
     */
    readonly addAttempt: (id: string, attempt: NewAttempt, attemptsKnown: number) => Sql<number | undefined>
    /** Records that an attempt was sent, and the answer; `prepared` becomes `submitted`. */
    readonly noteSent: (id: string, number: number, sent: SentNote) => Sql<void>
    /** Open settlements of this network, oldest first. */
    readonly open: (limit: number) => Sql<ReadonlyArray<OpenRecord>>
    /**
     * Ends an open settlement: outcome, channel, budget and fact in one transaction. Every
     * decision carries the number of attempts it was based on, so a stale decision is rejected.
     */
    readonly resolve: (id: string, outcome: Outcome, attemptsKnown?: number) => Sql<ResolveAnswer>
    /** Failed settlements of this network with an authorization that may still be used, the first to expire first. */
    readonly watched: (limit: number) => Sql<ReadonlyArray<WatchedRecord>>
    /** Ends the watch; `isDead`: every ledger of the authorization's life was seen without a use. */
    readonly unwatch: (id: string, isDead: boolean) => Sql<void>
    /** Corrects a watched settlement once, with its fact. */
    readonly correct: (id: string, correction: Correction) => Sql<ResolveAnswer>
    /**
     * Takes the channel from an open settlement with a used number: it raises the fence, has the number read again as
     * of that ledger, and the settlement's end will not change the channel. False if the settlement does not hold the
     * channel, or has changed since the read: a channel on which it was rebuilt stays its own.
     */
    readonly freeChannel: (id: string, ledger: number, attemptsKnown: number) => Sql<boolean>
    /**
     * Moves an open settlement without a channel onto the leased one, with an attempt that replaces all earlier ones.
     * Returns that attempt's number; undefined if the settlement has changed since the read, or the lease was lost. The
     * caller must ensure that the earlier attempts can no longer land.
     */
    readonly rebuild: (
      id: string,
      lease: ChannelLease,
      attempt: NewAttempt,
      attemptsKnown: number
    ) => Sql<number | undefined>
    /**
     * Whether the journal, or an operator, names the principal as the owner of a transaction without a stored
     * settlement.
     */
    readonly wasOwner: (transaction: string, principal: string) => Sql<boolean>
    /** Stores a settlement that we found on the ledger, but without a record. */
    readonly adopt: (settlement: AdoptedSettlement) => Sql<AdoptAnswer>
    /**
     * True only for the owner's one claim that may deliver the undelivered success of a settled payment. The same claim
     * repeated has the same answer. `key`: the digest of the caller's `Idempotency-Key`.
     */
    readonly claimDelivery: (claim: DeliveryClaim, principal: string, key?: string) => Sql<boolean>
    /** Confirms the claims with sent answers and releases the others. Idempotent. */
    readonly endDeliveries: (ends: ReadonlyArray<DeliveryEnd>) => Sql<void>
    /** Restores deliveries that the database may have lost: marks them confirmed, also before their settlements end. */
    readonly restoreDeliveries: (deliveries: ReadonlyArray<KnownDelivery>) => Sql<void>
    readonly openCount: Sql<number>
    readonly byIds: (ids: ReadonlyArray<string>) => Sql<ReadonlyArray<SettlementRecord>>
    /** The ended ones among these settlements. */
    readonly endsOf: (ids: ReadonlyArray<string>) => Sql<ReadonlyArray<SettlementRecord>>
    /** A principal's own settlements by identifier or by hash (inner, or outer of any attempt). */
    readonly lookup: (
      principal: string,
      by: { readonly identifier: string } | { readonly hash: string }
    ) => Sql<ReadonlyArray<SettlementRecord>>
  }
>()("tollkeeper/settlement/Settlements") {}
