// The form of a crafted payment: one deviation from an honest one, and the shared vocabulary of the tables.
import { Address, type Keypair, nativeToScVal } from "@stellar/stellar-sdk"
import type { PaymentOptions, PaymentTamper } from "./buyer.ts"

export interface Cast {
  readonly buyer: Keypair
  readonly thief: Keypair
  readonly payTo: string
  readonly sponsor: string
  readonly channel: string
}

export interface Crafted {
  readonly attack: number
  readonly name: string
  /** Accepted reasons, in neutral spelling; without it any reason is accepted. */
  readonly reasons?: ReadonlyArray<string> | undefined
  readonly tamper: (cast: Cast) => PaymentTamper
  /** The seller's terms have another recipient. */
  readonly payTo?: (cast: Cast) => string
  readonly options?: Partial<PaymentOptions>
  /** It may also settle, once and at the price. */
  readonly isHarmless?: boolean
}

export const price = 10_000n
/** Prefix of the scheme's reasons, in neutral spelling. */
export const exact = "invalid_exact_ledger_payload"
export const i128 = (value: bigint) => nativeToScVal(value, { type: "i128" })
export const address = (value: string) => new Address(value).toScVal()

export const anyReason = undefined

export const crafted = (
  attack: number,
  name: string,
  reasons: ReadonlyArray<string> | undefined,
  tamper: Crafted["tamper"]
): Crafted => ({ attack, name, reasons, tamper })
