// Deploys the settlement contract of `upto` to the embedded ledger, and gives its address there.
import { deployContract, deploying, type LocalContract, localAddressOf } from "../ledger-local/contract.ts"
import { settlementWasm, settlementWasmHash } from "../x402-upto/contract.ts"

const contract: LocalContract = {
  deployer: "tollkeeper local upto deployer",
  wasmHash: settlementWasmHash,
  wasm: settlementWasm
}

/** The contract's address on an embedded ledger with this passphrase. Other code has another address. */
export const localContractOf = (passphrase: string): string => localAddressOf(contract, passphrase)

/** Deploys the contract unless it exists, and keeps it alive; returns its address. */
export const deploy = () => deployContract(contract)

/** The plugin's start. */
export const layer = deploying(contract)
