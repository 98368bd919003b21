// Balances of the asset contract. An account's balance is its account entry (native) or trustline, the issuer's is
// unlimited and touches nothing; a contract's balance is a persistent entry of the asset contract, with its own flags.
// A native transfer to an account that does not exist creates it when it covers two base reserves (CAP-73).
import { AddressType, EntryType } from "../xdr/types.ts"
import { accountRange, type BalanceRange, INT64_MAX, trustLineRange } from "../state/ClassicBalance.ts"
import type { ContractHost, Frame } from "../host/HostTypes.ts"
import { HostError } from "../host/HostError.ts"
import { accountKey, contractDataKey, Durability, trustLineAsset, trustLineKey } from "../state/LedgerKeys.ts"
import type { SacInstance } from "./SacInstance.ts"
import {
  address as addressVal,
  bool,
  field,
  i128,
  i64,
  readBool,
  readI128,
  readMap,
  structMap,
  sym,
  vec
} from "../xdr/ScVal.ts"
import {
  type AccountEntry,
  contractAddress,
  equalBytes,
  type LedgerEntry,
  type LedgerKey,
  type PublicKey,
  type ScAddress,
  type ScVal,
  type TrustLineEntry,
  xdrText
} from "../xdr/Xdr.ts"

/** The asset contract's published error numbers, as they appear in `Error(Contract, #n)`. */
export const SacError = {
  operationNotSupported: 2,
  alreadyInitialized: 3,
  authentication: 5,
  accountMissing: 6,
  negativeAmount: 8,
  allowance: 9,
  balance: 10,
  balanceDeauthorized: 11,
  overflow: 12,
  trustLineMissing: 13,
  insufficientReserve: 14,
  tooManySubentries: 15
} as const

const DAY_LEDGERS = 17_280
const BALANCE_EXTEND_TO = 30 * DAY_LEDGERS
const BALANCE_THRESHOLD = BALANCE_EXTEND_TO - DAY_LEDGERS
const I128_MAX = (1n << 127n) - 1n

const AccountFlag = { required: 1, revocable: 2, clawback: 8 } as const
const LineFlag = { authorized: 1, maintainLiabilities: 2, clawback: 4 } as const

interface ContractBalance {
  readonly amount: bigint
  readonly authorized: boolean
  readonly clawback: boolean
}

const fail = (code: number, message: string, args: ReadonlyArray<ScVal> = []): HostError =>
  HostError.contract(code, message, args)

const outOfRange = (range: BalanceRange, balance: bigint): HostError =>
  balance > INT64_MAX
    ? fail(SacError.balance, "resulting balance overflow")
    : fail(SacError.balance, "resulting balance is not within the allowed range", [
        i64(range.min),
        i64(balance),
        i64(range.max)
      ])

const balanceVal = ({ amount, authorized, clawback }: ContractBalance): ScVal =>
  structMap({ amount: i128(amount), authorized: bool(authorized), clawback: bool(clawback) })

const readBalance = (value: ScVal): ContractBalance => {
  const map = readMap(value)
  const [amount, authorized, clawback] = [field(map, "amount"), field(map, "authorized"), field(map, "clawback")]
  if (amount === undefined || authorized === undefined || clawback === undefined) {
    throw HostError.of("Value", "InvalidInput", "balance is malformed")
  }
  return { amount: readI128(amount), authorized: readBool(authorized), clawback: readBool(clawback) }
}

export class SacBalances {
  readonly #host: ContractHost
  readonly #frame: Frame
  readonly #sac: SacInstance

  constructor(host: ContractHost, frame: Frame, sac: SacInstance) {
    this.#host = host
    this.#frame = frame
    this.#sac = sac
  }

  #isIssuer(account: PublicKey): boolean {
    return this.#sac.issuer !== undefined && equalBytes(account.ed25519, this.#sac.issuer.ed25519)
  }

  #issuerHas(flag: number): boolean {
    if (this.#sac.issuer === undefined) return false
    const entry = this.#host.storage.require(accountKey(this.#sac.issuer))
    return entry.data.type === EntryType.account && (entry.data.account.flags & flag) !== 0
  }

  #line(account: PublicKey): readonly [LedgerKey, TrustLineEntry] {
    const key = trustLineKey(account, trustLineAsset(this.#sac.asset))
    const entry = this.#host.storage.get(key)
    if (entry?.data.type !== EntryType.trustLine) {
      throw fail(SacError.trustLineMissing, "trustline entry is missing for account", [
        addressVal({ type: 0, accountId: account })
      ])
    }
    return [key, entry.data.trustLine]
  }

  #contractKey(owner: ScAddress): { readonly key: LedgerKey; readonly value: ScVal } {
    const value = vec([sym("Balance"), addressVal(owner)])
    return { key: contractDataKey(contractAddress(this.#frame.contractId), value, Durability.persistent), value }
  }

  #contractBalance(owner: ScAddress): ContractBalance | undefined {
    const entry: LedgerEntry | undefined = this.#host.storage.get(this.#contractKey(owner).key)
    return entry?.data.type === EntryType.contractData ? readBalance(entry.data.contractData.val) : undefined
  }

  #writeContractBalance(owner: ScAddress, balance: ContractBalance): void {
    const { key, value } = this.#contractKey(owner)
    const val = balanceVal(balance)
    const contract = contractAddress(this.#frame.contractId)
    this.#host.storage.put(key, { type: 6, contractData: { ext: { v: 0 }, contract, key: value, durability: 1, val } })
    this.#host.storage.extend(key, BALANCE_THRESHOLD, BALANCE_EXTEND_TO)
  }

  isAuthorized(owner: ScAddress): boolean {
    if (owner.type === AddressType.account) {
      if (this.#sac.issuer === undefined || this.#isIssuer(owner.accountId)) return true
      return (this.#line(owner.accountId)[1].flags & LineFlag.authorized) !== 0
    }
    return this.#contractBalance(owner)?.authorized ?? !this.#issuerHas(AccountFlag.required)
  }

  /** The whole balance, reserve included; the issuer's is the greatest i64. */
  read(owner: ScAddress): bigint {
    if (owner.type !== AddressType.account) {
      const balance = this.#contractBalance(owner)
      if (balance === undefined) return 0n
      this.#host.storage.extend(this.#contractKey(owner).key, BALANCE_THRESHOLD, BALANCE_EXTEND_TO)
      return balance.amount
    }
    if (this.#sac.issuer === undefined) {
      const entry = this.#host.storage.get(accountKey(owner.accountId))
      if (entry?.data.type !== EntryType.account)
        throw fail(SacError.accountMissing, "account entry is missing", [addressVal(owner)])
      return this.#checked(
        entry.data.account.balance,
        accountRange(entry.data.account, this.#host.input.settings.baseReserveStroops)
      )
    }
    if (this.#isIssuer(owner.accountId)) return INT64_MAX
    const line = this.#line(owner.accountId)[1]
    return this.#checked(line.balance, trustLineRange(line))
  }

  #checked(balance: bigint, range: BalanceRange): bigint {
    if (balance < range.min) throw HostError.of("Storage", "InternalError", "balance below minimum")
    if (balance > range.max) throw HostError.of("Storage", "InternalError", "balance above maximum")
    return balance
  }

  spend(owner: ScAddress, amount: bigint): void {
    this.#requireAuthorized(owner)
    this.spendUnchecked(owner, amount)
  }

  #requireAuthorized(owner: ScAddress): void {
    if (!this.isAuthorized(owner)) throw fail(SacError.balanceDeauthorized, "balance is deauthorized")
  }

  /** Debits regardless of the authorization flag, as a clawback does. */
  spendUnchecked(owner: ScAddress, amount: bigint): void {
    if (owner.type === AddressType.account) {
      if (amount > INT64_MAX) throw fail(SacError.overflow, "spent amount is too large for an i64")
      this.#moveClassic(owner, -amount)
      return
    }
    const balance = this.#contractBalance(owner)
    if (balance === undefined) {
      if (amount > 0n) throw fail(SacError.balance, "zero balance is not sufficient to spend", [i128(amount)])
      return
    }
    if (balance.amount < amount) {
      throw fail(SacError.balance, "balance is not sufficient to spend", [balanceVal(balance), i128(amount)])
    }
    this.#writeContractBalance(owner, { ...balance, amount: balance.amount - amount })
  }

  receive(owner: ScAddress, amount: bigint): void {
    this.#requireAuthorized(owner)
    if (owner.type === AddressType.account) {
      if (amount > INT64_MAX) throw fail(SacError.overflow, "received amount is too large for an i64")
      this.#moveClassic(owner, amount)
      return
    }
    const balance = this.#contractBalance(owner) ?? {
      amount: 0n,
      authorized: true,
      clawback: this.#issuerHas(AccountFlag.clawback)
    }
    const sum = balance.amount + amount
    if (sum > I128_MAX) throw fail(SacError.overflow, "balance overflow in receive_balance")
    this.#writeContractBalance(owner, { ...balance, amount: sum })
  }

  #moveClassic(owner: Extract<ScAddress, { type: 0 }>, amount: bigint): void {
    if (this.#sac.issuer === undefined) return this.#moveNative(owner, amount)
    if (this.#isIssuer(owner.accountId)) return
    const [key, line] = this.#line(owner.accountId)
    const range = trustLineRange(line)
    const balance = line.balance + amount
    if (balance < range.min || balance > range.max) throw outOfRange(range, balance)
    this.#host.storage.put(key, { type: 1, trustLine: { ...line, balance } })
  }

  #moveNative(owner: Extract<ScAddress, { type: 0 }>, amount: bigint): void {
    const { storage, input } = this.#host
    const key = accountKey(owner.accountId)
    const entry = storage.get(key)
    if (entry?.data.type !== EntryType.account) return this.#createAccount(owner, key, amount)
    const account = entry.data.account
    const range = accountRange(account, input.settings.baseReserveStroops)
    const balance = account.balance + amount
    if (balance < range.min || balance > range.max) throw outOfRange(range, balance)
    storage.put(key, { type: 0, account: { ...account, balance } })
  }

  #createAccount(owner: Extract<ScAddress, { type: 0 }>, key: LedgerKey, amount: bigint): void {
    const { storage, input } = this.#host
    if (amount <= 0n) throw fail(SacError.accountMissing, "account entry is missing", [addressVal(owner)])
    const reserve = 2n * input.settings.baseReserveStroops
    if (amount < reserve) {
      throw fail(SacError.insufficientReserve, "transfer amount is below minimum balance for new account", [
        i64(amount),
        i64(reserve)
      ])
    }
    storage.put(key, { type: 0, account: newAccount(owner.accountId, amount, input.ledgerSeq) })
  }

  /** Refuses unless the balance can be clawed back, before any authorization is checked. */
  checkClawback(owner: ScAddress): void {
    if (owner.type !== AddressType.account) {
      const balance = this.#contractBalance(owner)
      if (balance === undefined) throw fail(SacError.balance, "no balance to clawback")
      if (!balance.clawback) throw fail(SacError.balance, "balance isn't clawbackable")
      return
    }
    if (this.#sac.issuer === undefined) throw fail(SacError.operationNotSupported, "cannot clawback native asset")
    if (this.#isIssuer(owner.accountId)) throw fail(SacError.operationNotSupported, "cannot clawback from issuer")
    if ((this.#line(owner.accountId)[1].flags & LineFlag.clawback) === 0) {
      throw fail(SacError.balance, "trustline isn't clawbackable")
    }
  }

  setAuthorized(owner: ScAddress, authorized: boolean): void {
    if (!authorized && !this.#issuerHas(AccountFlag.revocable)) {
      throw fail(SacError.operationNotSupported, "issuer does not have AUTH_REVOCABLE set")
    }
    if (owner.type !== AddressType.account) {
      const balance = this.#contractBalance(owner) ?? { amount: 0n, clawback: this.#issuerHas(AccountFlag.clawback) }
      this.#writeContractBalance(owner, { ...balance, authorized })
      return
    }
    if (this.#sac.issuer === undefined) throw fail(SacError.operationNotSupported, "expected trustline asset")
    if (this.#isIssuer(owner.accountId)) throw fail(SacError.operationNotSupported, "issuer doesn't have a trustline")
    const [key, line] = this.#line(owner.accountId)
    if (((line.flags & LineFlag.authorized) !== 0) === authorized) return
    const flags = authorized
      ? (line.flags & ~LineFlag.maintainLiabilities) | LineFlag.authorized
      : (line.flags & ~LineFlag.authorized) | LineFlag.maintainLiabilities
    this.#host.storage.put(key, { type: 1, trustLine: { ...line, flags } })
  }
}

/** A new account as the network makes it: master weight 1, thresholds 0, its sequence starting at the ledger. */
export const newAccount = (accountId: PublicKey, balance: bigint, ledgerSeq: number): AccountEntry => ({
  accountId,
  balance,
  seqNum: BigInt(ledgerSeq) << 32n,
  numSubEntries: 0,
  inflationDest: null,
  flags: 0,
  homeDomain: xdrText(""),
  thresholds: new Uint8Array([1, 0, 0, 0]),
  signers: [],
  ext: { v: 0 }
})
