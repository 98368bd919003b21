// Reads the balances of addresses in the asset behind a contract: first the contract's instance, which names the asset,
// then the entries with the balances.
import { xdr } from "@stellar/stellar-sdk/base"
import { Effect, Option } from "effect"
import { type Holding, holdingKey, readHeldAsset, readHolding } from "../stellar/Holding.ts"
import { instanceKey } from "../stellar/LedgerEntry.ts"
import { decodeWith } from "./ledgerEntries.ts"

/** The balance of an asset's issuer. */
const unbounded: Holding = { spendable: (1n << 127n) - 1n, room: (1n << 127n) - 1n, isAuthorized: true }

interface Entry {
  readonly key: string
  readonly xdr: string
}

/** `ask` reads the entries of these keys; entries that do not exist on the ledger are left out. */
export const readHoldings = <E>(ask: (keys: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Entry>, E>) =>
  Effect.fnUntraced(function* (contract: string, addresses: ReadonlyArray<string>) {
    const [named] = yield* ask([instanceKey(contract)])
    const instance = decodeWith(xdr.LedgerEntryData.schema, named?.xdr)
    const asset = instance === undefined ? undefined : readHeldAsset(instance)
    if (asset === undefined) return Option.none()
    const keys = new Map(addresses.map((address) => [address, holdingKey(contract, asset, address)]))
    const entries = yield* ask([...keys.values()].filter((key) => key !== undefined))
    const holdingByAddress = new Map<string, Holding>()
    for (const [address, key] of keys) {
      const entry = entries.find((one) => one.key === key)
      const data = decodeWith(xdr.LedgerEntryData.schema, entry?.xdr)
      const holding = key === undefined ? unbounded : data === undefined ? undefined : readHolding(data)
      if (holding !== undefined) holdingByAddress.set(address, holding)
    }
    return Option.some(holdingByAddress)
  })
