// What the embedded ledger gives to others in the same process: the ledger itself, to be driven without sockets. The
// facilitator never uses it: it speaks to the ledger as to any other, over its RPC.
import { contract } from "../../kernel/contract/Contract.ts"
import { LocalLedger } from "./LocalLedger.ts"

export { LocalLedger }
export { deployContract, deploying, type LocalContract, localAddressOf } from "./deployContract.ts"

export const localLedgerContract = contract("ledger-local", LocalLedger)
