// How the ledger begins: at ledger 1 000 with the network's root, a friendbot, and two assets that have their
// contracts, native XLM and the test network's USDC. Starting high, everything that is signed here names ledgers that
// are long past on the real test network, so no signature made here can be used there.
import { EntryType } from "../engine/xdr/types.ts"
import type { EngineCrypto } from "../engine/host/Random.ts"
import { invokeHostFunction } from "../engine/host/Host.ts"
import type { NetworkSettings } from "../engine/state/NetworkSettings.ts"
import { Store } from "../engine/state/Store.ts"
import { type AccountEntry, type Asset, type PublicKey, xdrText } from "../engine/xdr/Xdr.ts"
import type { Signer } from "../transaction/Wire.ts"
import { friendbotAccount, rootAccount, usdc, usdcAdminAccount, usdcIssuerId } from "./accounts.ts"
import { seal, TOTAL_STROOPS, ZERO_HASH } from "./Header.ts"
import { emptyHashes } from "./transactionSet.ts"
import type { LedgerState } from "./Ledger.ts"

const GENESIS_SEQUENCE = 1_000
/** The friendbot can fund a few million accounts. */
const FRIENDBOT_STROOPS = 40_000_000_000_0000000n
const ISSUER_STROOPS = 10_000_0000000n

interface GenesisInput {
  readonly crypto: EngineCrypto
  readonly networkId: Uint8Array
  readonly settings: NetworkSettings
  /** Seconds. */
  readonly closeTime: bigint
  readonly sequence?: number
}

const account = (id: PublicKey, balance: bigint, signers: ReadonlyArray<Signer> = []): AccountEntry => ({
  accountId: id,
  balance,
  seqNum: 0n,
  numSubEntries: signers.length,
  inflationDest: null,
  flags: 0,
  homeDomain: xdrText(""),
  thresholds: new Uint8Array([1, 0, 0, 0]),
  signers: [...signers],
  ext: { v: 0 }
})

export const friendbotAtGenesis = (crypto: EngineCrypto): AccountEntry =>
  account(friendbotAccount(crypto).id, FRIENDBOT_STROOPS)

const deployAsset = (input: GenesisInput, store: Store, ledgerSeq: number, asset: Asset): void => {
  const deployed = invokeHostFunction({
    store,
    settings: input.settings,
    ledgerSeq,
    closeTime: input.closeTime,
    networkId: input.networkId,
    source: rootAccount(input.crypto, input.networkId).id,
    hostFunction: {
      type: 1,
      createContract: { contractIdPreimage: { type: 1, fromAsset: asset }, executable: { type: 1 } }
    },
    auth: [],
    access: { mode: "record", randomNonce: () => 0n, useUpgradedAuth: false, allowNonRoot: false },
    crypto: input.crypto
  })
  if (!deployed.ok) throw deployed.error
  deployed.changes.commit()
}

/** Lets every contract entry live as long as the network allows, so that an idle ledger does not archive its assets. */
const extendAll = (input: GenesisInput, store: Store, ledgerSeq: number): void => {
  const liveUntilLedgerSeq = ledgerSeq + input.settings.ttl.maxEntryLedgers - 1
  for (const entry of [...store.entries()]) {
    if (entry.data.type === EntryType.ttl)
      store.put({ ...entry, data: { type: 9, ttl: { ...entry.data.ttl, liveUntilLedgerSeq } } })
  }
}

/** The state after genesis: one closed ledger, no transactions. */
export const genesis = (input: GenesisInput): LedgerState => {
  const { crypto, networkId, settings, closeTime } = input
  const sequence = input.sequence ?? GENESIS_SEQUENCE
  const store = Store.empty()
  const put = (entry: AccountEntry): void =>
    store.put({ lastModifiedLedgerSeq: sequence, data: { type: 0, account: entry }, ext: { v: 0 } })
  put(account(rootAccount(crypto, networkId).id, TOTAL_STROOPS - FRIENDBOT_STROOPS - ISSUER_STROOPS))
  put(friendbotAtGenesis(crypto))
  put(
    account(usdcIssuerId, ISSUER_STROOPS, [
      { key: { type: 0, ed25519: usdcAdminAccount(crypto).id.ed25519 }, weight: 1 }
    ])
  )
  deployAsset(input, store, sequence, { type: 0 })
  deployAsset(input, store, sequence, usdc)
  extendAll(input, store, sequence)
  const parts = {
    sequence,
    closeTime,
    previousHash: ZERO_HASH,
    ...emptyHashes(crypto, ZERO_HASH),
    feePoolStroops: 0n,
    lastOfferId: 0n
  }
  return { store, ledgers: [seal(crypto, settings, parts, [])] }
}
