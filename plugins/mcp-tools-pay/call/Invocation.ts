// One logical purchase for an agent: the resource, the terms and the seller. Its key identifies repeated calls, so that
// an agent that calls again while the outcome of the first is open gets that outcome and does not pay twice. The
// protocol is the seller module's; here a seller is only sent a payment and answers.
import type { Effect } from "effect"
import { Hex } from "effect/encoding"
import { canonicalJson } from "../../../kernel/payment/wire/canonicalJson.ts"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"
import type { ToolError } from "../../mcp-tools/contract.ts"
import type { Authorization } from "../budget/Reservation.ts"
import type { Transfer } from "../payer/authorization.ts"
import type { Challenge, Fields, PaymentOption, SettlementClaim } from "../seller/SellerWire.ts"

/** What a tool returns to its agent. */
export type Output = Readonly<Record<string, unknown>>

/** Amounts in atomic units. */
export interface Deposit {
  readonly amount: bigint
  /** Of one call. */
  readonly price: bigint
  /** Where the deposit goes. */
  readonly contract: string
  /** After which the payer has what is left back without the seller. */
  readonly withdrawDelaySeconds: number
}

export interface Invocation {
  readonly key: string
  /** Under which versions before this one may have kept a payment for the same call. */
  readonly formerKeys: ReadonlyArray<string>
  readonly ref: string
  readonly versionHash: string
  /** As the catalog has it; the seller's own copy may differ in descriptive text. */
  readonly option: PaymentOption
  /** What the payment may move, where it is not the option's amount: a deposit into a payment channel. */
  readonly deposit?: Deposit | undefined
  /** What is requested, where the call may have to be made again for another call's sake. */
  readonly request?: KeptRequest | undefined
  /** What the policy may ask of the resource. */
  readonly about: {
    readonly kind: "http" | "mcp"
    readonly origin: string | undefined
    readonly grade: "proven" | "provisional"
  }
  /** What a person is shown: the seller's and the agent's words, as they are. */
  readonly bought: {
    readonly title: string
    /** The tool, or method and URL. */
    readonly action: string
    readonly arguments: unknown
  }
}

/** What a seller answered to a call that carried a payment, read. */
export interface PaidAnswer {
  readonly settlement: SettlementClaim | undefined
  /** Set when the seller asks for payment again, with its reason where that is a word. */
  readonly asksAgain: { readonly reason: string | undefined; readonly challenge?: Challenge | undefined } | undefined
  /** Whether it is what the resource answers, and not a failure on the way to it, after which the same may be asked. */
  readonly isContent: boolean
  /** It says itself that it failed: a status from 400 on, or an error of the tool. */
  readonly isFailure?: boolean
  /** It broke off, or did not end in time: the same payment, sent again, may bring the whole. */
  readonly isPart?: boolean
  /** Why, where it is not for its end. */
  readonly why?: string | undefined
  /** What was bought, as the agent gets it. */
  readonly content: Output
}

/** An HTTP request, as it is stored with its payment; the body is base64. */
export interface KeptRequest {
  readonly url: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

/** The seller of one invocation. */
export interface Seller {
  /** A seller of another request, reached the same way. */
  readonly ofRequest?: (request: KeptRequest) => Seller
  readonly send: (payment: Fields) => Effect.Effect<PaidAnswer, ToolError>
  readonly close: Effect.Effect<void>
}

/** A signed payment whose result is not delivered yet. */
export interface OpenPayment {
  readonly identifier: string
  readonly payment: Fields
  readonly authorization: Authorization
  /** What a person was shown of it is decided on, and not kept. */
  readonly invocation: Omit<Invocation, "bought" | "formerKeys">
  /** The transfer that the authorization makes, where it is not the option's own: a deposit into a channel. */
  readonly moves?: Transfer | undefined
  /** Payments of this invocation that were signed before it, and have been proven dead. */
  readonly replaces: ReadonlyArray<string>
}

/** A voucher of a payment channel whose result is not delivered yet. No ledger decides on it. */
export type OpenVoucher = Omit<OpenPayment, "authorization" | "moves">

/**
 * The same agent, resource, arguments and asset that was asked for make the same invocation, in any session, whatever
 * the listing says meanwhile. `resource`: the reference of a tool; empty for an HTTP request, whose arguments have its
 * whole address: a listing that was renamed or replaced on the way is another name of what was paid for. `assets`:
 * those that an operator allows, one of which earlier versions had in the key where none was asked for.
 * `idempotencyKey`: the same call under another one is another purchase.
 */
export const invocationKeys = (
  crypto: Crypto["Service"],
  called: {
    readonly agent: string
    readonly resource: string
    readonly args: Fields
    readonly idempotencyKey?: string | undefined
  },
  asked: string | undefined,
  assets: Iterable<string>
): Pick<Invocation, "key" | "formerKeys"> => {
  const { agent, args, idempotencyKey, resource } = called
  const named = idempotencyKey === undefined ? [] : [idempotencyKey]
  const keyOf = (asset: string | null) =>
    Hex.encode(crypto.sha256(new TextEncoder().encode(canonicalJson([agent, resource, args, asset, ...named]))))
  const hasFormer = asked === undefined && idempotencyKey === undefined
  return { key: keyOf(asked ?? null), formerKeys: hasFormer ? [...assets].map(keyOf) : [] }
}
