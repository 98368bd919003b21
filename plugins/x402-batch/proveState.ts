// Reads a channel's state by a simulation of the contract's `state` function, after a read did not find its entry. The
// simulation restores an archived entry, and only the contract's error proves that the channel does not exist. A node
// behind the caller's ledger, and any other refusal, do not prove anything: the ledger is then unavailable.
import { xdr } from "@stellar/stellar-sdk/base"
import { Effect } from "effect"
import { type LedgerRpc, LedgerUnavailable } from "../../kernel/ledger/LedgerRpc.ts"
import { accountOf, contractAddressOf } from "../../kernel/stellar/Address.ts"
import { callOperation, encodeOperation, type InvokeArgs } from "../../kernel/stellar/ContractCall.ts"
import { simulationEnvelope } from "../../kernel/stellar/Envelope.ts"
import { readXdr } from "../../kernel/stellar/readXdr.ts"
import { bytesValue, type Value } from "../../kernel/stellar/Value.ts"
import { batchFunctions, channelStateOf } from "./batchCalls.ts"
import { bytesOfHex, type ChannelState } from "./batchCodec.ts"
import { batchErrors } from "./batchErrors.ts"

/** Source of a simulation that is never sent. */
const nullAccount = "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF"

/** The error of a node that does not show the newest ledger yet. */
export const behind = (operation: string, ledger: number, newest: number) =>
  new LedgerUnavailable({ operation, message: `the node is at ledger ${ledger}, behind ${newest}` })

const unproven = (message: string) => new LedgerUnavailable({ operation: "simulateTransaction", message })

interface ProvenState {
  readonly ledger: number
  /** Undefined if the contract does not have the channel. */
  readonly state: ChannelState | undefined
}

/** The state of a channel, or the proof that it does not exist, as of `leastLedger` or later. */
export const proveState = Effect.fnUntraced(function* (
  rpc: Pick<LedgerRpc["Service"], "simulate">,
  contract: string,
  channelId: string,
  leastLedger: number
): Effect.fn.Return<ProvenState, LedgerUnavailable> {
  const args = [bytesValue(bytesOfHex(channelId))]
  const invoked = { contractAddress: contractAddressOf(contract), functionName: batchFunctions.state, args }
  const operation = encodeOperation(callOperation(invoked as unknown as InvokeArgs, []))
  const answer = yield* rpc.simulate(simulationEnvelope(accountOf(nullAccount), operation))
  const { latestLedger: ledger } = answer
  if (ledger < leastLedger) return yield* behind("simulateTransaction", ledger, leastLedger)
  if (answer._tag === "Simulated" && answer.resultXdr !== undefined) {
    const state = channelStateOf(readXdr(xdr.ScVal.schema, answer.resultXdr) as unknown as Value)
    if (state !== undefined) return { ledger, state }
  }
  if (answer._tag === "Refused" && answer.code.includes(`Contract, #${batchErrors.ChannelNotFound})`))
    return { ledger, state: undefined }
  return yield* unproven("the nodes do not show whether the channel exists; try again later")
})
