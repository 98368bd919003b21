// Facts about a payer's authorization that settlement needs and only the scheme can read: the nonce (the ledger records
// its use), whether an operation on the ledger uses it, and whether an executed transaction made the promised transfer.
// The payment layer answers by the schemes that are registered at that moment.
import { Context } from "effect"
import type { ExecutedTransaction } from "../ledger/Executed.ts"

/** The ledger keeps one entry for each use of a nonce, as long as the authorization lives. */
export interface Nonce {
  /** Address of the account that signed, G… or C… */
  readonly address: string
  readonly nonce: bigint
}

/** Use of an authorization's nonce by an operation: none, as exactly this payment, or as something else. */
export type NonceUse = "none" | "same" | "other"

/** The payment that a settlement recorded. */
export interface PromisedPayment {
  readonly scheme: string
  readonly authorizationKey: string
  readonly payer: string
  readonly payTo: string
  readonly asset: string
  readonly amount: bigint
}

/** Atomic units. */
interface AmountsMoved {
  readonly amount: bigint
  /** Amount sold for the seller's accounting, if it differs from the amount planned when it was recorded. */
  readonly sold?: bigint | undefined
}

export class Authorizations extends Context.Service<
  Authorizations,
  {
    /** `none` if only the recorded transaction can move the money. Undefined if the scheme is not registered now. */
    readonly nonceOf: (promised: PromisedPayment) => Nonce | "none" | undefined
    /** Pure; the operation is XDR. */
    readonly useIn: (promised: PromisedPayment, operationXdr: Uint8Array) => NonceUse
    /** The amounts that a successful transaction moved, if it made the promised transfer. */
    readonly movementIn: (promised: PromisedPayment, executed: ExecutedTransaction) => AmountsMoved | undefined
  }
>()("tollkeeper/settlement/Authorizations") {}
