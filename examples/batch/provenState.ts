// Reads the state of a channel that a node does not show. The entry may be archived, or may not exist; only the
// contract itself proves which. A simulation restores archived entries; any other result proves nothing.
import { Account, Networks, Operation, rpc, TransactionBuilder, xdr } from "@stellar/stellar-sdk"
import type { Value } from "../../kernel/stellar/Value.ts"
import { channelStateOf } from "../../plugins/x402-batch/contract.ts"

/** Source account of a transaction that is only simulated. */
export const nullAccount = "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF"
/** The contract's own error: no channel with that id was ever opened. */
const channelNotFound = /Contract, #207\)/

export const stateOf = (value: xdr.ScVal) => channelStateOf(xdr.ScVal.schema.decode(value.toXdr()) as unknown as Value)

/** Undefined for a channel that was never opened; rejects if the ledger does not show whether it exists. */
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
