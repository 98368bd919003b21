// The embedded ledger's service for other plugins in the same process, which can drive it without sockets. The
// facilitator never uses it: it accesses this ledger over RPC, like any other.
import { contract } from "../../kernel/contract/Contract.ts"
import { LocalLedger } from "./LocalLedger.ts"

export { LocalLedger }
export { deployContract, deploying, type LocalContract, localAddressOf } from "./deployContract.ts"

export const localLedgerContract = contract("ledger-local", LocalLedger)
