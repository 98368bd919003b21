// A payment scheme, as a plugin provides it. A scheme is free of HTTP and SQL. It decodes its own payload, checks it
// (cheap checks first, then at most one simulation), rebuilds the transaction on a leased channel, and reads the
// executed transaction. The kernel contains no code for a particular scheme. There are two kinds: the ledger settles
// each payment of a `LedgerScheme`; a `ChannelScheme` also has payments that a deposit on the ledger covers.
import { Context, Effect, Layer, Option, Schema, type Scope } from "effect"
import type { NetworkId } from "../config/Network.ts"
import type { LedgerUnavailable } from "../ledger/LedgerRpc.ts"
import type { ExecutedTransaction } from "../ledger/Executed.ts"
import type { Nonce, NonceUse } from "../settlement/Authorizations.ts"
import type { AnswerExtra } from "./Answer.ts"
import type { Books } from "../settlement/store/Settlements.ts"
import type { Payment } from "./Payment.ts"
import { type Refusal, type RefusalRow, coreReasons, refusal } from "./Refusal.ts"
import type { Unsigned, UnsignedOrder } from "./Unsigned.ts"

/**
 * The operation that a payment is verified for. `verify`: before the seller's work, by the maximum that the payer
 * signed; `settle`: after it, by the amount to transfer. For a scheme of fixed amounts both are the same.
 */
export type Stage = "verify" | "settle"

/** A payment that passed every check of its scheme, with the data for settling it. */
export interface Verified {
  readonly _tag: "Verified"
  readonly payer: string
  readonly payTo: string
  readonly asset: string
  /** The maximum that the payer's signature allows, atomic units. */
  readonly amountMax: bigint
  /** The amount to transfer, atomic units. Equal to `amountMax` for a fixed-amount scheme. */
  readonly amount: bigint
  /** Identity of the payer's authorization, opaque to the kernel, unique per network: it moves money at most once. */
  readonly authorizationKey: string
  /** Last ledger that accepts the authorization. */
  readonly authorizationExpiresLedger: number
  /** The resource fee in this service's simulation, stroops. */
  readonly resourceFeeStroops: bigint
  /** The scheme's own state between verify and prepare (simulation result and the like). */
  readonly state: unknown
  /** Extra fields of the verify answer. */
  readonly extra?: AnswerExtra
  /** Category for the seller's accounting when the transaction does not pay `amount` to `payTo`. */
  readonly books?: Books
}

/** A payment that the scheme's own check settles, without a transaction on the ledger. */
export interface Covered {
  readonly _tag: "Covered"
  readonly payer: string
  readonly extra?: AnswerExtra
}

/** A scheme's changes to the answer of a settled payment. */
interface SettledChanges {
  /** Replaces the record's payer. */
  readonly payer?: string | undefined
  /** False for a seller's own call: the answer names no payer. */
  readonly hasBuyer?: boolean
  /** False if it transfers nothing: the answer's amount is empty. */
  readonly transfers?: boolean
  /** The transferred asset, if the scheme's answers name it. */
  readonly asset?: string | undefined
  readonly extra?: AnswerExtra | undefined
}

/** Result of `prepare`: the operation and resource data for the channel's transaction, not signed yet. */
export interface Prepared {
  /** XDR of the single operation, including auth entries, without a source account. */
  readonly operationXdr: Uint8Array
  /** XDR of SorobanTransactionData, including the resource fee. */
  readonly sorobanDataXdr: Uint8Array
}

/**
 * Result of reading the executed transaction: the amount that actually moved from payer to payTo. `sold` is the amount
 * sold, if `books` are kept separately and the transaction shows it. Atomic units.
 */
export type Executed =
  | { readonly _tag: "Moved"; readonly amount: bigint; readonly sold?: bigint | undefined }
  | { readonly _tag: "NotMoved"; readonly message: string }

/** The promised transfer: the settlement records it, and the transaction must have made it. */
export interface PromisedMovement {
  readonly payer: string
  readonly payTo: string
  readonly asset: string
  readonly amount: bigint
}

/** Reads how the ledger used an authorization, whichever party used it. Pure. */
export interface NonceReader {
  /**
   * The nonce that an authorization uses up. `none` if the payment needs no authorization: then only its recorded
   * transaction moves money. Undefined for a key of another scheme.
   */
  readonly nonceOf: (authorizationKey: string) => Nonce | "none" | undefined
  /**
   * How an operation on the ledger uses that nonce: `same` only when it carries this very authorization (contract,
   * function, arguments and the key itself) for exactly this payment. Two authorizations may share a nonce.
   */
  readonly useIn: (authorizationKey: string, promise: PromisedMovement, operationXdr: Uint8Array) => NonceUse
}

/** The authorization that a payload claims, before any check. */
export interface Authorization {
  /** As `Verified.authorizationKey`. */
  readonly key: string
  /** The address that claims to have signed it. */
  readonly payer: string
  /** Its transfer, if it differs from the terms' amount to their payTo; for example, a deposit. */
  readonly moves?: Pick<PromisedMovement, "payTo" | "amount">
}

interface SchemeBase {
  /** As on the wire: `[a-z][a-z0-9-]*`. */
  readonly scheme: string
  readonly refusals: ReadonlyArray<RefusalRow>
  /**
   * Extra fields of the kind's `extra` besides `areFeesSponsored`; None when the scheme is not offered on the network.
   * A caller by its owner may have fields of its own.
   */
  readonly supportedExtra: (
    network: NetworkId,
    owner?: string | undefined
  ) => Option.Option<Readonly<Record<string, unknown>>>
  /**
   * The authorization read offline from the payload, for the lookup that precedes every check; None when the payload
   * cannot be read (verify will then refuse it). No RPC, no cost beyond decoding.
   */
  readonly authorization: (payment: Payment) => Option.Option<Authorization>
  /** The payments that a payload counts as for its caller's rate, by the cost of its checks; default 1. Pure. */
  readonly weight?: (payment: Payment) => number
  /**
   * Every check of the scheme, including the relation of the accepted amount to the required one. The core compares all
   * other terms. Fails only when the ledger is unavailable.
   */
  readonly verify: (payment: Payment, stage: Stage) => Effect.Effect<Verified | Refusal, LedgerUnavailable>
  /**
   * Rebuilds the operation for submission from the verified state. No RPC. Refuses a payment that became too old since
   * verify, because the request may have waited for a channel.
   */
  readonly prepare: (payment: Payment, verified: Verified) => Effect.Effect<Prepared | Refusal, LedgerUnavailable>
  /**
   * Builds the unsigned payload for these terms and checks it like `verify`, except for signatures. No simulation. A
   * scheme without a fixed layout returns `cannotPrepare`.
   */
  readonly unsigned: (payment: Payment, order: UnsignedOrder) => Effect.Effect<Unsigned | Refusal, LedgerUnavailable>
  /** Reads a successful transaction of this service: did the promised movement happen? Pure. */
  readonly checkExecuted: (promise: PromisedMovement, executed: ExecutedTransaction) => Executed
  readonly nonces: NonceReader
}

/** A scheme with one transaction for each payment. */
interface LedgerScheme extends SchemeBase {
  readonly kind: "ledger"
}

/** A scheme whose deposits, claims and refunds are transactions, and whose vouchers a deposit covers. */
export interface ChannelScheme extends SchemeBase {
  readonly kind: "channel"
  /**
   * Keys under which the same request may have been recorded before, for a payment without an authorization on the
   * ledger: its caller receives its undelivered success. No RPC.
   */
  readonly formerKeys: (payment: Payment) => ReadonlyArray<string>
  /**
   * Checks a payment that a deposit covers. The kernel does not search for it or record it; settle returns this
   * answer. Undefined for a payment that the ledger settles.
   */
  readonly cover: (payment: Payment, stage: Stage) => CoverCheck | undefined
  /** True if no part of the payload expires by `maxTimeoutSeconds`, which may then be 0. Pure. */
  readonly isUntimed: (payment: Payment) => boolean
  readonly answerSettled: (payment: Payment) => Effect.Effect<SettledChanges>
}

export type CoverCheck = Effect.Effect<Covered | Refusal, LedgerUnavailable>

export type Scheme = LedgerScheme | ChannelScheme

/** `unsigned` of a scheme without a fixed layout. */
export const cannotPrepare: Scheme["unsigned"] = () =>
  Effect.succeed(refusal("unsupported_scheme", "this facilitator cannot prepare payments of this scheme"))

/** True if no part of the payload expires by `maxTimeoutSeconds`. */
export const isUntimedFor =
  (payment: Payment) =>
  (scheme: Scheme): boolean =>
    scheme.kind === "channel" && scheme.isUntimed(payment)

/** The payments that a payment counts as for its caller's rate. */
export const weightOf = (schemes: Schemes["Service"], payment: Payment): number =>
  Option.getOrUndefined(schemes.find(payment.requirements.scheme))?.weight?.(payment) ?? 1

/** The former keys of a payment; none if the ledger settles every payment of its scheme. */
export const formerKeysOf = (scheme: Scheme, payment: Payment): ReadonlyArray<string> =>
  scheme.kind === "channel" ? scheme.formerKeys(payment) : []

/** Two plugins registered the same scheme, or one reason with two meanings. */
class SchemeRefused extends Schema.TaggedError<SchemeRefused>()("SchemeRefused", {
  scheme: Schema.String,
  message: Schema.String
}) {}

export class Schemes extends Context.Service<
  Schemes,
  {
    /**
     * Registers a scheme, with its reasons, while the Scope lives. Fails if the core or another scheme already has the
     * reason: one reason has one meaning.
     */
    readonly register: (scheme: Scheme) => Effect.Effect<void, SchemeRefused, Scope.Scope>
    /** The HTTP status of a refusal's reason; 200 for an unregistered one. */
    readonly statusOf: (reason: string) => RefusalRow["status"]
    /** Adds reasons that do not refuse payments, such as a catalog's, while the Scope lives. */
    readonly describe: (rows: ReadonlyArray<RefusalRow>) => Effect.Effect<void, never, Scope.Scope>
    /** Every reason that this process may return. */
    readonly reasons: () => ReadonlyArray<RefusalRow>
    readonly find: (scheme: string) => Option.Option<Scheme>
    readonly all: () => ReadonlyArray<Scheme>
  }
>()("tollkeeper/payment/Schemes") {
  static readonly layer = Layer.sync(Schemes, () => {
    const schemes = new Map<string, Scheme>()
    const statuses = new Map<string, RefusalRow["status"]>(coreReasons.map(({ reason, status }) => [reason, status]))
    const described = new Set<ReadonlyArray<RefusalRow>>()
    const offer = (scheme: Scheme) => {
      schemes.set(scheme.scheme, scheme)
      for (const { reason, status } of scheme.refusals) statuses.set(reason, status)
    }
    const takeBack = ({ refusals, scheme }: Scheme) => {
      schemes.delete(scheme)
      for (const { reason } of refusals) statuses.delete(reason)
    }
    const register = Effect.fnUntraced(function* (scheme: Scheme) {
      const refuse = (message: string) => new SchemeRefused({ scheme: scheme.scheme, message })
      if (schemes.has(scheme.scheme)) return yield* refuse("offered twice")
      const words = scheme.refusals.map(({ reason }) => reason)
      const taken = words.find((word, index) => statuses.has(word) || words.indexOf(word) !== index)
      if (taken !== undefined) return yield* refuse(`the word ${taken} is taken`)
      yield* Effect.acquireRelease(
        Effect.sync(() => offer(scheme)),
        () => Effect.sync(() => takeBack(scheme))
      )
    })
    return Schemes.of({
      register,
      statusOf: (reason) => statuses.get(reason) ?? 200,
      describe: (rows) =>
        Effect.asVoid(
          Effect.acquireRelease(
            Effect.sync(() => described.add(rows)),
            () => Effect.sync(() => described.delete(rows))
          )
        ),
      reasons: () => [
        ...coreReasons,
        ...[...schemes.values()].flatMap(({ refusals }) => refusals),
        ...[...described].flat()
      ],
      find: (scheme) => Option.fromUndefinedOr(schemes.get(scheme)),
      all: () => [...schemes.values()]
    })
  })
}
