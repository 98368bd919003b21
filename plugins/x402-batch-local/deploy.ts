// Deploys the contract of `batch-settlement` to the embedded ledger, and gives its address there.
import { deployContract, deploying, type LocalContract, localAddressOf } from "../ledger-local/contract.ts"
import { batchWasm, batchWasmHash } from "../x402-batch/contract.ts"

const contract: LocalContract = {
  deployer: "tollkeeper local batch deployer",
  wasmHash: batchWasmHash,
  wasm: batchWasm
}

/** The contract's address on an embedded ledger with this passphrase. Other code has another address. */
export const localBatchContractOf = (passphrase: string): string => localAddressOf(contract, passphrase)

/** Deploys the contract unless it exists, and keeps it alive; returns its address. */
export const deploy = () => deployContract(contract)

/** The plugin's start. */
export const layer = deploying(contract)
