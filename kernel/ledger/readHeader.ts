// A closed ledger of a node's history: its hash, and whether it is the network's first.
import { xdr } from "@stellar/stellar-sdk/base"
import { Effect } from "effect"
import type { Endpoints } from "./JsonRpc.ts"
import { decodeWith } from "./ledgerEntries.ts"
import { LedgerUnavailable } from "./LedgerUnavailable.ts"
import * as Wire from "./LedgerWire.ts"

/** The network's first ledgers: the second one follows the genesis, which contains no transactions. */
const firstLedgers = 2

export const readHeader = (ask: Endpoints["ask"]) =>
  Effect.fnUntraced(function* (sequence: number) {
    const question = { startLedger: sequence, pagination: { limit: 1 } }
    const { ledgers } = yield* ask("getLedgers", question, Wire.GetLedgers)
    const ledger = ledgers?.[0]
    const entry = decodeWith(xdr.LedgerHeaderHistoryEntry.schema, ledger?.headerXdr)
    if (ledger?.sequence !== sequence || entry === undefined)
      return yield* new LedgerUnavailable({ operation: "getLedgers", message: "the answer is not for this ledger" })
    const isFirst = sequence <= firstLedgers || entry.header.previousLedgerHash.every((byte) => byte === 0)
    return { hash: ledger.hash, isFirst }
  })
