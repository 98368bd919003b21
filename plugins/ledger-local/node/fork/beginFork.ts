// The first ledger of a fork: it follows the upstream's latest one and is empty. Two things that no network has are
// added to the state: the friendbot's account if it is missing, and the local USDC administrator as a signer of the
// test network's USDC issuer if that exists, so that the friendbot can send the same assets as elsewhere.
import { Effect } from "effect"
import type { EngineCrypto } from "../../engine/host/Random.ts"
import { accountKeyString } from "../../engine/state/LedgerKeys.ts"
import type { NetworkSettings } from "../../engine/state/NetworkSettings.ts"
import { type AccountEntry, compareBytes } from "../../engine/xdr/Xdr.ts"
import { readAccount } from "../../transaction/validate.ts"
import type { Signer } from "../../transaction/Wire.ts"
import { friendbotAccount, usdcAdminAccount, usdcIssuerId } from "../accounts.ts"
import { friendbotAtGenesis } from "../genesis.ts"
import { seal } from "../Header.ts"
import type { LedgerState } from "../Ledger.ts"
import { emptyHashes } from "../transactionSet.ts"
import type { ForkedEntries } from "./ForkedEntries.ts"
import { forkedAtOf, inheritedOf } from "./readOrigin.ts"

/** Enough for every threshold. */
const WEIGHT = 255

const keyOf = ({ key }: Signer): Uint8Array => (key.type === 0 ? key.ed25519 : new Uint8Array(0))

/** The account with an additional signer. The reserve for the signer is not required. */
const withSigner = (account: AccountEntry, signer: Signer): AccountEntry => {
  const position = account.signers.filter(
    (one) => one.key.type === 0 && compareBytes(keyOf(one), keyOf(signer)) < 0
  ).length
  const { ext } = account
  const sponsors =
    ext.v === 1 && ext.v1.ext.v === 2 ? ext.v1.ext.v2.signerSponsoringIDs.toSpliced(position, 0, null) : []
  return {
    ...account,
    numSubEntries: account.numSubEntries + 1,
    signers: account.signers.toSpliced(position, 0, signer),
    ext:
      ext.v === 1 && ext.v1.ext.v === 2
        ? { v: 1, v1: { ...ext.v1, ext: { v: 2, v2: { ...ext.v1.ext.v2, signerSponsoringIDs: sponsors } } } }
        : ext
  }
}

interface BeginInput {
  readonly crypto: EngineCrypto
  readonly settings: NetworkSettings
  /** The current time, in seconds. */
  readonly now: bigint
}

export const beginFork = Effect.fnUntraced(function* ({ crypto, now, settings }: BeginInput, forked: ForkedEntries) {
  const { closeTime, sequence: followed } = forkedAtOf(forked.origin)
  const sequence = followed + 1
  const store = forked.root.child()
  const friendbot = friendbotAccount(crypto).id
  yield* forked.learn([friendbot, usdcIssuerId].map(accountKeyString).filter((key) => !store.knows(key)))
  const put = (account: AccountEntry): void =>
    store.put({ lastModifiedLedgerSeq: sequence, data: { type: 0, account }, ext: { v: 0 } })
  if (readAccount(store, friendbot) === undefined) put(friendbotAtGenesis(crypto))
  const issuer = store.get(accountKeyString(usdcIssuerId))
  const signer: Signer = { key: { type: 0, ed25519: usdcAdminAccount(crypto).id.ed25519 }, weight: WEIGHT }
  if (issuer?.data.type === 0) {
    const { account } = issuer.data
    const isThere = account.signers.some((one) => compareBytes(keyOf(one), keyOf(signer)) === 0)
    if (!isThere) store.put({ ...issuer, data: { type: 0, account: withSigner(account, signer) } })
  }
  const inherited = inheritedOf(crypto, forked.origin)
  const parts = {
    sequence,
    closeTime: now > closeTime ? now : closeTime + 1n,
    ...inherited,
    ...emptyHashes(crypto, inherited.previousHash)
  }
  const state: LedgerState = { store, ledgers: [seal(crypto, settings, parts, [])] }
  return state
})
