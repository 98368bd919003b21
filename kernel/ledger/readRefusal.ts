// Names of transaction results, and the content of a refusal by a node's queue: the result's name and, if the fee is
// too low, a sufficient bid.
import type { xdr } from "@stellar/stellar-sdk/base"
import { Result } from "effect"
import { bumpedIn, readEnvelope, resourceFeeOf } from "../stellar/Envelope.ts"

const resultCodes: Readonly<Record<number, string>> = {
  1: "txFeeBumpInnerSuccess",
  0: "txSuccess",
  [-1]: "txFailed",
  [-2]: "txTooEarly",
  [-3]: "txTooLate",
  [-4]: "txMissingOperation",
  [-5]: "txBadSeq",
  [-6]: "txBadAuth",
  [-7]: "txInsufficientBalance",
  [-8]: "txNoAccount",
  [-9]: "txInsufficientFee",
  [-10]: "txBadAuthExtra",
  [-11]: "txInternalError",
  [-12]: "txNotSupported",
  [-13]: "txFeeBumpInnerFailed",
  [-14]: "txBadSponsorship",
  [-15]: "txBadMinSeqAgeOrGap",
  [-16]: "txMalformed",
  [-17]: "txSorobanInvalid"
}

/** The name of a result: of the inner transaction, if a fee bump carries one. */
const codeOf = (result: xdr.TransactionResultWire | undefined): string => {
  if (result === undefined) return "unknown"
  const outer = resultCodes[result.result.code] ?? String(result.result.code)
  const inner =
    "innerResultPair" in result.result ? resultCodes[result.result.innerResultPair.result.result.code] : undefined
  return inner ?? outer
}

/** The part of a bump's fee in addition to its bid: the resource fee of the inner transaction. */
const resourceStroopsOf = (envelope: string): bigint => {
  const read = Result.getOrUndefined(readEnvelope(envelope))
  const inner = read === undefined ? undefined : bumpedIn(read)
  return (inner === undefined ? undefined : resourceFeeOf(inner)) ?? 0n
}

/** A refusal by the queue; a refusal for the fee includes the whole sufficient fee. */
export const readRefusal = (envelope: string, result: xdr.TransactionResultWire | undefined) => {
  const code = codeOf(result)
  const enough = code === "txInsufficientFee" ? (result?.feeCharged ?? 0n) : 0n
  if (enough <= 0n) return { _tag: "Error", code } as const
  const resourceStroops = resourceStroopsOf(envelope)
  const askedStroops = enough > resourceStroops ? enough - resourceStroops : enough
  return { _tag: "Error", code, askedStroops } as const
}
