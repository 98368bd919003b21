// The friendbot: 10 000 XLM for an account, by a real transaction that it signs itself, and on request a USDC trustline
// with an amount of USDC, by an edit of the state in the same ledger (a trustline needs its owner's signature, which a
// friendbot does not have). Each request is a ledger of its own and does not wait for the next one.
import { EntryType } from "../engine/xdr/types.ts"
import type { Store } from "../engine/state/Store.ts"
import { accountKey, keyString, trustLineKey } from "../engine/state/LedgerKeys.ts"
import { type PublicKey, publicKey, type Transaction } from "../engine/xdr/Xdr.ts"
import { INT64_MAX, TrustFlag } from "../transaction/Accounts.ts"
import { transactionHash } from "../transaction/Frame.ts"
import { readAccount } from "../transaction/validate.ts"
import type { Operation } from "../transaction/Wire.ts"
import { friendbotAccount, usdc } from "./accounts.ts"
import type { ClosedLedger, Ledger } from "./Ledger.ts"

export const FRIENDBOT_STROOPS = 10_000_0000000n
const FEE_STROOPS = 100
/** USDC units (10^-7) that one request may ask for. */
export const USDC_UNITS_MAX = 1_000_000_000_0000000n

const fundOperation = (store: Store, id: PublicKey): Operation => ({
  sourceAccount: null,
  body:
    readAccount(store, id) === undefined
      ? { type: 0, createAccountOp: { destination: id, startingBalance: FRIENDBOT_STROOPS } }
      : {
          type: 1,
          paymentOp: { destination: { type: 0, ed25519: id.ed25519 }, asset: { type: 0 }, amount: FRIENDBOT_STROOPS }
        }
})

/** Opens the trustline when there is none and adds `units` to its balance. */
const giveUsdc = (store: Store, id: PublicKey, units: bigint, ledgerSeq: number): void => {
  const line = store.get(keyString(trustLineKey(id, usdc)))
  const balance = units + (line?.data.type === EntryType.trustLine ? line.data.trustLine.balance : 0n)
  const opened = {
    accountId: id,
    asset: usdc,
    balance,
    limit: INT64_MAX,
    flags: TrustFlag.authorized,
    ext: { v: 0 as const }
  }
  const trustLine = line?.data.type === EntryType.trustLine ? { ...line.data.trustLine, balance } : opened
  store.put({ lastModifiedLedgerSeq: ledgerSeq, data: { type: 1, trustLine }, ext: line?.ext ?? { v: 0 } })
  const owner = store.get(keyString(accountKey(id)))
  if (line !== undefined || owner?.data.type !== EntryType.account) return
  const account = { ...owner.data.account, numSubEntries: owner.data.account.numSubEntries + 1 }
  store.put({ ...owner, lastModifiedLedgerSeq: ledgerSeq, data: { type: 0, account } })
}

/**
 * Computes the friendbot's ledger for one account. `usdcUnits` undefined leaves USDC alone; 0 only opens the trustline.
 */
export const prepareFunding = (
  ledger: Ledger,
  key: Uint8Array,
  usdcUnits: bigint | undefined,
  now: bigint
): ClosedLedger => {
  const { crypto, networkId } = ledger.options
  const bot = friendbotAccount(crypto)
  const id = publicKey(key)
  const tx: Transaction = {
    sourceAccount: { type: 0, ed25519: bot.id.ed25519 },
    fee: FEE_STROOPS,
    seqNum: readAccount(ledger.store, bot.id)!.seqNum + 1n,
    cond: { type: 0 },
    memo: { type: 0 },
    operations: [fundOperation(ledger.store, id)],
    ext: { v: 0 }
  }
  const signature = crypto.ed25519Sign(bot.seed, transactionHash(crypto, networkId, tx))
  const frame = ledger.frame({ type: 2, v1: { tx, signatures: [{ hint: bot.id.ed25519.slice(28), signature }] } })!
  return ledger.prepareAside(now, [frame], (store, ledgerSeq) => {
    if (usdcUnits !== undefined) giveUsdc(store, id, usdcUnits, ledgerSeq)
  })
}
