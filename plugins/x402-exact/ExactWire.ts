// The payload of an `exact` payment on the wire: `{ transaction }`, base64 XDR of an unsigned envelope around one
// signed contract call. Decodes it once into the subject of the checks, and refuses everything except the known forms.
import { Result } from "effect"
import { plainIn, readEnvelope, sourceOf, type Transaction } from "../../kernel/stellar/Envelope.ts"
import { addressOf, i128Of, isMuxed, type Value } from "../../kernel/stellar/Value.ts"

/** A decoded payload. The call is the operation's, with its function and arguments unchecked. */
export interface ExactPayload {
  readonly tx: Transaction
  readonly source: string
}

/** Decodes `payload.transaction`; the reason names the problem, never the content. */
export const decodePayload = ({
  transaction
}: Readonly<Record<string, unknown>>): Result.Result<ExactPayload, { readonly reason: string }> => {
  if (typeof transaction !== "string") return Result.fail({ reason: "payload.transaction is not a string" })
  const read = readEnvelope(transaction)
  if (Result.isFailure(read)) return Result.fail({ reason: `payload.transaction is ${read.failure.reason}` })
  const tx = plainIn(read.success)
  if (tx === undefined) return Result.fail({ reason: "payload.transaction is not a plain v1 envelope" })
  return Result.succeed({ tx, source: sourceOf(tx) })
}

/** A token transfer's arguments. `muxed`: an address form that carries an id in addition to the account. */
export interface TransferArgs {
  readonly from: string | undefined
  readonly to: string | undefined
  readonly amount: bigint | undefined
  readonly muxed: boolean
}

export const transferArgs = ([from, to, amount]: ReadonlyArray<Value>): TransferArgs => ({
  from: addressOf(from),
  to: addressOf(to),
  muxed: isMuxed(from) || isMuxed(to),
  amount: i128Of(amount)
})
