// What the settlement code must know of a payer's authorization, which only its scheme can read: the nonce whose use
// the ledger records, whether an operation on the ledger uses it, and whether an executed transaction moved what was
// promised. The payment layer answers from the schemes that are registered at that moment.
import { Context } from "effect"
import type { ExecutedTransaction } from "../ledger/Executed.ts"

/** The ledger keeps one entry for each use of it, for as long as the authorization lives. */
export interface Nonce {
  /** Of the account that signed, G… or C… */
  readonly address: string
  readonly nonce: bigint
}

/** How an operation uses an authorization's nonce: not, as exactly this payment, or as something else. */
export type NonceUse = "none" | "same" | "other"

/** What a settlement says of its payment. */
export interface Promised {
  readonly scheme: string
  readonly authorizationKey: string
  readonly payer: string
  readonly payTo: string
  readonly asset: string
  readonly amount: bigint
}

/** Atomic units. */
export interface AmountsMoved {
  readonly amount: bigint
  /** What it sold for a seller's books, where that is not what was meant when it was recorded. */
  readonly sold?: bigint | undefined
}

export class Authorizations extends Context.Service<
  Authorizations,
  {
    /** `none` where the recorded transaction alone can move the money. Absent when the scheme is not registered now. */
    readonly nonceOf: (promised: Promised) => Nonce | "none" | undefined
    /** Pure; the operation is XDR. */
    readonly useIn: (promised: Promised, operationXdr: Uint8Array) => NonceUse
    /** What a successful transaction moved, when it is the movement that was promised. */
    readonly movementIn: (promised: Promised, executed: ExecutedTransaction) => AmountsMoved | undefined
  }
>()("tollkeeper/settlement/Authorizations") {}
