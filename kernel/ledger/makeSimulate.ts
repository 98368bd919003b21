// A simulation at an endpoint: refused, in need of a restore, or with the resources that the transaction will use.
import { xdr } from "@stellar/stellar-sdk/base"
import { Effect } from "effect"
import { archivedEntriesOf } from "../stellar/Envelope.ts"
import type { Endpoints } from "./JsonRpc.ts"
import { decodeBytes, fromBase64 } from "./ledgerEntries.ts"
import { contradiction, type LedgerUnavailable, type SimulationAnswer } from "./LedgerRpc.ts"
import * as Wire from "./LedgerWire.ts"

/** Maximum length of the excerpt of the host's message. */
const detailCharactersMax = 300

/** `Error(Type, Code)` of a host error, and the first plain text of its event log. */
export const readHostError = (error: string): { readonly code: string; readonly detail: string } => {
  const code = /Error\([A-Za-z]+, #?[A-Za-z0-9]+\)/.exec(error)?.[0] ?? "Error(Unknown, Unknown)"
  const said = /data:\[?"([^"]{1,200})"/.exec(error)?.[1] ?? ""
  return { code, detail: said.slice(0, detailCharactersMax) }
}

/** A fee in an answer. */
const digits = /^[0-9]{1,18}$/

/** Simulations; the figures of an answer must agree with each other. */
export const makeSimulate = ({ ask }: Endpoints) =>
  Effect.fnUntraced(function* (envelope: string): Effect.fn.Return<SimulationAnswer, LedgerUnavailable> {
    const answer = yield* ask("simulateTransaction", { transaction: envelope }, Wire.SimulateTransaction)
    const { latestLedger } = answer
    if (answer.error) return { _tag: "Refused", latestLedger, ...readHostError(answer.error) }
    const sorobanDataXdr = fromBase64(answer.transactionData ?? "")
    const data = decodeBytes(xdr.SorobanTransactionData.schema, sorobanDataXdr)
    if (sorobanDataXdr === undefined || data === undefined || !digits.test(answer.minResourceFee ?? "")) {
      return yield* contradiction("simulateTransaction", "a success without resource data")
    }
    const restoredEntries = archivedEntriesOf(data)
    // A node with a protocol that needs a separate restore transaction announces it, and marks no entries.
    if (answer.restorePreamble && restoredEntries === 0) {
      const fee = answer.restorePreamble.minResourceFee ?? ""
      return { _tag: "RestoreRequired", latestLedger, ...(digits.test(fee) ? { restoreStroops: BigInt(fee) } : {}) }
    }
    // The transaction pays the fee in its data, while ceilings and budget are checked against the other figure.
    if (data.resourceFee !== BigInt(answer.minResourceFee!)) {
      return yield* contradiction("simulateTransaction", "two resource fees that differ")
    }
    const bytes = (texts: ReadonlyArray<string> | null | undefined) => (texts ?? []).map(fromBase64)
    const eventsXdr = bytes(answer.events)
    const authXdr = bytes(answer.results?.[0]?.auth)
    if (eventsXdr.includes(undefined) || authXdr.includes(undefined)) {
      return yield* contradiction("simulateTransaction", "events or auth entries that are not base64")
    }
    const resultXdr = fromBase64(answer.results?.[0]?.xdr ?? "")
    return {
      _tag: "Simulated",
      latestLedger,
      ...(resultXdr === undefined || resultXdr.length === 0 ? {} : { resultXdr }),
      resourceFeeStroops: data.resourceFee,
      sorobanDataXdr,
      restoredEntries,
      eventsXdr: eventsXdr as ReadonlyArray<Uint8Array>,
      authXdr: authXdr as ReadonlyArray<Uint8Array>
    }
  })
