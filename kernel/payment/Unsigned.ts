// The unsigned payload that a payer signs for one payment. A scheme builds it only from the seller's terms
// (`Scheme.unsigned`); the layout is fixed, so a client builds the same bytes from its own terms and compares. Pure.
import { accountOf } from "../stellar/Address.ts"
import { type AuthEntry, addressEntry, type Invocation } from "../stellar/AuthEntry.ts"
import { callOperation, encodeOperation, type InvokeArgs } from "../stellar/ContractCall.ts"
import { simulationEnvelope } from "../stellar/Envelope.ts"
import { voidValue } from "../stellar/Value.ts"

/** Values that the terms leave open, for one payment. */
export interface UnsignedOrder {
  /** The signer: an account (G…) or a contract (C…). */
  readonly payer: string
  readonly nonce: bigint
  /** Last ledger of the signature. */
  readonly expiresLedger: number
  /** The newest ledger, and Unix seconds of its close. */
  readonly latestLedger: number
  readonly closedAtSeconds: number
  /** 32 random bytes, for a scheme that needs an id. */
  readonly salt: Uint8Array
  /** The payer's choices in addition to the terms, by name, as sent. The scheme decodes the names that it supports. */
  readonly choices: Readonly<Record<string, unknown>>
}

/** Other bytes for which the payload carries an ed25519 signature. The key signs their sha256. */
interface SignedBeside {
  /** G… */
  readonly signer: string
  readonly preimage: Uint8Array
}

export interface Unsigned {
  /** The contract call of the envelope. */
  readonly invoked: InvokeArgs
  /** The payer's authorization, unsigned. */
  readonly entry: AuthEntry
  /** Values that a client needs to build the same bytes, in addition to its terms and the entry's nonce and expiry. */
  readonly chosen: Readonly<Record<string, string | number | boolean>>
  /** The payload around the envelope, with empty signatures; absent: the envelope is the whole payload. */
  readonly payload?: (transaction: string) => Readonly<Record<string, unknown>>
  /** Other data to sign in addition to the authorization, by name. */
  readonly beside?: Readonly<Record<string, SignedBeside>>
}

/** Placeholder of a source account: the facilitator replaces it with a leased channel. */
const nullAccount = "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF"

/** The payer's authorization of an invocation, unsigned, with plain address credentials. */
export const unsignedEntry = ({ expiresLedger, nonce, payer }: UnsignedOrder, invocation: Invocation): AuthEntry =>
  addressEntry({ address: payer, nonce, signatureExpirationLedger: expiresLedger, signature: voidValue }, invocation)

/**
 * Base64 of the envelope around a call: the all-zero source, fee 100, sequence 1, no condition, no memo, no resource
 * data, no signature. Without entries a simulation records the required ones.
 */
export const unsignedEnvelope = (invoked: InvokeArgs, auth: ReadonlyArray<AuthEntry>): string =>
  simulationEnvelope(accountOf(nullAccount), encodeOperation(callOperation(invoked, auth)))
