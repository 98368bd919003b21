// The state of a channel whose entry a node does not show: it is archived, or there is none, which only the contract
// itself proves. A simulation restores archived entries; whatever else it says proves nothing.
import { Account, Networks, Operation, rpc, TransactionBuilder, xdr } from "@stellar/stellar-sdk"
import type { Value } from "../../kernel/stellar/Value.ts"
import { channelStateOf } from "../../plugins/x402-batch/contract.ts"

/** Source of what is never sent as it is. */
export const nullAccount = "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF"
/** The contract's own error: no channel of that id was ever opened. */
const channelNotFound = /Contract, #207\)/

export const stateOf = (value: xdr.ScVal) => channelStateOf(xdr.ScVal.schema.decode(value.toXdr()) as unknown as Value)

/** Undefined for a channel that was never opened; rejects where the ledger does not show whether there is one. */
export const provenState = async (server: rpc.Server, network: string, contract: string, channelId: string) => {
  const args = [xdr.ScVal.scvBytes(Buffer.from(channelId, "hex"))]
  const networkPassphrase = network.endsWith(":pubnet") ? Networks.PUBLIC : Networks.TESTNET
  const asked = new TransactionBuilder(new Account(nullAccount, "0"), { fee: "100", networkPassphrase })
    .addOperation(Operation.invokeContractFunction({ contract, function: "state", args }))
    .setTimeout(300)
    .build()
  const answer = await server.simulateTransaction(asked)
  if (rpc.Api.isSimulationSuccess(answer) && answer.result !== undefined) return stateOf(answer.result.retval)
  if (rpc.Api.isSimulationError(answer) && channelNotFound.test(answer.error)) return undefined
  throw new Error("the ledger does not show whether the channel exists")
}
