// The events that classic operations and fees emit since protocol 23 (CAP-67): the same words that an asset's contract
// uses, so one reader follows both. A transfer from the issuer is a mint, to the issuer a burn; the receiver's muxed id
// or the transaction's memo travels in the data. With events switched off, nothing is collected.
import { AccountType, AssetType, ClaimAtomType, MemoType } from "../engine/xdr/types.ts"
import { issuerOf } from "../engine/sac/SacInstance.ts"
import { assetContractId } from "./assetContractId.ts"
import type { EngineCrypto } from "../engine/host/Random.ts"
import * as scv from "../engine/xdr/ScVal.ts"
import {
  accountAddress,
  accountStrKey,
  type Asset,
  type ContractEvent,
  equalBytes,
  latin1,
  type PublicKey,
  type ScAddress,
  type ScVal
} from "../engine/xdr/Xdr.ts"
import { accountOf } from "./Frame.ts"
import type { ClaimableBalanceId, ClaimAtom, ClaimLiquidityAtom, Memo, MuxedAccount, TransactionEvent } from "./Wire.ts"

interface EventSettings {
  readonly crypto: EngineCrypto
  readonly networkId: Uint8Array
  readonly classicEvents: boolean
}

const assetCode = (bytes: Uint8Array): string => latin1(bytes).replace(/\0+$/, "")

/** An asset in the form of SEP-11: `native` or `CODE:ISSUER`. */
export const sep11 = (asset: Asset): string => {
  switch (asset.type) {
    case AssetType.native:
      return "native"
    case AssetType.alphaNum4:
      return `${assetCode(asset.alphaNum4.assetCode)}:${accountStrKey(asset.alphaNum4.issuer)}`
    case AssetType.alphaNum12:
      return `${assetCode(asset.alphaNum12.assetCode)}:${accountStrKey(asset.alphaNum12.issuer)}`
  }
}

export const isIssuer = (id: PublicKey, asset: Asset): boolean => {
  const issuer = issuerOf(asset)
  return issuer !== undefined && equalBytes(issuer.ed25519, id.ed25519)
}

const memoValue = (memo: Memo): ScVal | undefined => {
  switch (memo.type) {
    case MemoType.none:
      return undefined
    case MemoType.text:
      return { type: 14, str: memo.text }
    case MemoType.id:
      return scv.u64(memo.id)
    case MemoType.hash:
      return scv.bytes(memo.hash)
    case MemoType.return:
      return scv.bytes(memo.retHash)
  }
}

/** The holder of an asset: an account, a claimable balance or a liquidity pool. */
type Party = MuxedAccount | Extract<ScAddress, { type: 3 | 4 }>

export const balanceParty = (claimableBalanceId: ClaimableBalanceId): Party => ({ type: 3, claimableBalanceId })

export const poolParty = (liquidityPoolId: Uint8Array): Party => ({ type: 4, liquidityPoolId })

export const accountParty = (id: PublicKey): MuxedAccount => ({ type: 0, ed25519: id.ed25519 })

const isAccount = (party: Party): party is MuxedAccount =>
  party.type === AccountType.ed25519 || party.type === AccountType.muxed

const address = (id: PublicKey): ScVal => scv.address(accountAddress(id))

/** A party without the id that an account may carry. */
const partyAddress = (party: Party): ScVal => (isAccount(party) ? address(accountOf(party)) : scv.address(party))

const issues = (party: Party, asset: Asset): boolean => isAccount(party) && isIssuer(accountOf(party), asset)

export class ClassicEvents {
  readonly events: Array<ContractEvent> = []
  readonly #settings: EventSettings
  readonly #memo: Memo

  constructor(settings: EventSettings, memo: Memo) {
    this.#settings = settings
    this.#memo = memo
  }

  /** A movement of an asset, reported as mint, burn or transfer. */
  moved(asset: Asset, from: Party, to: Party, amount: bigint, withMemo = true): void {
    const [source, target] = [partyAddress(from), partyAddress(to)]
    const minted = issues(from, asset)
    const received = withMemo ? this.#received(to, amount) : scv.i128(amount)
    if (minted === issues(to, asset)) this.#emit(asset, "transfer", [source, target], received)
    else if (minted) this.#emit(asset, "mint", [target], received)
    else this.#emit(asset, "burn", [source], scv.i128(amount))
  }

  transferred(asset: Asset, from: MuxedAccount, to: MuxedAccount, amount: bigint): void {
    this.#emit(asset, "transfer", [address(accountOf(from)), address(accountOf(to))], this.#received(to, amount))
  }

  /** The trade with each offer taken and each pool, seen from the trader. These events carry no memo. */
  claimed(trader: MuxedAccount, claims: ReadonlyArray<ClaimAtom>): void {
    const own = accountParty(accountOf(trader))
    const traded = (other: Party, atom: Omit<ClaimLiquidityAtom, "liquidityPoolId">): void => {
      this.moved(atom.assetBought, own, other, atom.amountBought, false)
      this.moved(atom.assetSold, other, own, atom.amountSold, false)
    }
    for (const claim of claims) {
      if (claim.type === ClaimAtomType.orderBook) traded(accountParty(claim.orderBook.sellerId), claim.orderBook)
      else if (claim.type === ClaimAtomType.liquidityPool)
        traded(poolParty(claim.liquidityPool.liquidityPoolId), claim.liquidityPool)
    }
  }

  clawedBack(asset: Asset, from: Party, amount: bigint): void {
    this.#emit(asset, "clawback", [partyAddress(from)], scv.i128(amount))
  }

  authorized(asset: Asset, id: PublicKey, on: boolean): void {
    this.#emit(asset, "set_authorized", [address(id)], scv.bool(on))
  }

  #received(to: Party, amount: bigint): ScVal {
    if (!isAccount(to)) return scv.i128(amount)
    const muxed = to.type === AccountType.muxed ? scv.u64(to.med25519.id) : memoValue(this.#memo)
    return muxed === undefined ? scv.i128(amount) : scv.structMap({ amount: scv.i128(amount), to_muxed_id: muxed })
  }

  #emit(asset: Asset, name: string, topics: ReadonlyArray<ScVal>, data: ScVal): void {
    if (!this.#settings.classicEvents) return
    this.events.push(assetEvent(this.#settings, asset, [scv.sym(name), ...topics, scv.str(sep11(asset))], data))
  }
}

const assetEvent = (settings: EventSettings, asset: Asset, topics: Array<ScVal>, data: ScVal): ContractEvent => ({
  ext: { v: 0 },
  contractId: assetContractId(settings.crypto, settings.networkId, asset),
  type: 1,
  body: { v: 0, v0: { topics, data } }
})

/** The fee events of a transaction: charged before all transactions, refunded (negative) after all; none of zero. */
export const feeEvent = (
  settings: EventSettings,
  payer: PublicKey,
  stroops: bigint,
  stage: "beforeAll" | "afterAll"
): ReadonlyArray<TransactionEvent> =>
  !settings.classicEvents || stroops === 0n
    ? []
    : [
        {
          stage: stage === "beforeAll" ? 0 : 2,
          event: assetEvent(settings, { type: 0 }, [scv.sym("fee"), address(payer)], scv.i128(stroops))
        }
      ]
