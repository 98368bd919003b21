// Liquidity pools as entries: their ids, access rules and lifetime. A pool exists while any account keeps a trustline
// for its shares. Such a trustline is counted on the owner's lines of the pool's two assets, which cannot be closed as
// long as it exists.
import { keyString, trustLineKey } from "../../engine/state/LedgerKeys.ts"
import { AssetType, EntryType } from "../../engine/xdr/types.ts"
import {
  type Asset,
  codecAsset,
  compareBytes,
  type LedgerEntry,
  type LedgerKey,
  type PublicKey,
  type TrustLineEntry
} from "../../engine/xdr/Xdr.ts"
import { maintainsLiabilities, withPoolUses } from "../Accounts.ts"
import { isAssetValid } from "../assetRules.ts"
import { isIssuer } from "../ClassicEvents.ts"
import type { ApplyContext, LedgerContext } from "../Context.ts"
import { codecs, type LiquidityPool, type PoolParameters } from "../Wire.ts"
import { POOL_FEE_BASIS_POINTS } from "./poolAmounts.ts"

/** Flags of the ledger's header with which validators disable pool operations. */
export const PoolSwitch = { trading: 1, deposit: 2, withdrawal: 4 } as const

export const isSwitchedOff = ({ settings }: LedgerContext, flag: number): boolean => (settings.ledgerFlags & flag) !== 0

const compareAssets = (a: Asset, b: Asset): number => compareBytes(codecAsset.encode(a), codecAsset.encode(b))

export const areParametersValid = ({ assetA, assetB, fee }: PoolParameters): boolean =>
  isAssetValid(assetA) && isAssetValid(assetB) && compareAssets(assetA, assetB) < 0 && fee === POOL_FEE_BASIS_POINTS

export const poolIdOf = ({ crypto }: LedgerContext, constantProduct: PoolParameters): Uint8Array =>
  crypto.sha256(codecs.LiquidityPoolParameters.encode({ type: 0, constantProduct }))

/** The id of the pool that trades two assets, whichever of them comes first. */
export const poolIdOfPair = (ledger: LedgerContext, one: Asset, other: Asset): Uint8Array => {
  const [assetA, assetB] = compareAssets(one, other) < 0 ? [one, other] : [other, one]
  return poolIdOf(ledger, { assetA, assetB, fee: POOL_FEE_BASIS_POINTS })
}

export const poolKey = (liquidityPoolId: Uint8Array): LedgerKey => ({ type: 5, liquidityPool: { liquidityPoolId } })

export const poolOf = (entry: LedgerEntry | undefined): LiquidityPool | undefined =>
  entry?.data.type === EntryType.liquidityPool ? entry.data.liquidityPool.body.constantProduct : undefined

export const putPool = ({ txn }: ApplyContext, liquidityPoolId: Uint8Array, pool: LiquidityPool): void =>
  txn.put({
    lastModifiedLedgerSeq: txn.ledgerSeq,
    data: { type: 5, liquidityPool: { liquidityPoolId, body: { type: 0, constantProduct: pool } } },
    ext: txn.peek(poolKey(liquidityPoolId))?.ext ?? { v: 0 }
  })

/** True when the network has frozen one of the source's lines of the pool's assets. */
export const isPoolFrozen = ({ ledger, source }: ApplyContext, { params }: LiquidityPool): boolean =>
  [params.assetA, params.assetB].some(
    (asset) => asset.type !== AssetType.native && ledger.settings.frozenKeys.has(keyString(trustLineKey(source, asset)))
  )

/** The owner's line of one of a pool's assets; nothing for the native asset and for the issuer, which need none. */
const lineFor = ({ txn }: ApplyContext, owner: PublicKey, asset: Asset): TrustLineEntry | "none" | undefined =>
  asset.type === AssetType.native || isIssuer(owner, asset) ? "none" : txn.loadTrustLine(owner, asset)

/** Counts a new line of pool shares on the source's lines and in the pool, which it may be the first of. */
export const joinPool = (
  context: ApplyContext,
  id: Uint8Array,
  params: PoolParameters
): "ok" | "lineMissing" | "notAuthorized" => {
  const { txn, source } = context
  for (const asset of [params.assetA, params.assetB]) {
    const line = lineFor(context, source, asset)
    if (line === undefined) return "lineMissing"
    if (line === "none") continue
    if (!maintainsLiabilities(line.flags)) return "notAuthorized"
    txn.putTrustLine(withPoolUses(line, 1))
  }
  const pool = poolOf(txn.load(poolKey(id)))
  putPool(
    context,
    id,
    pool === undefined
      ? { params, reserveA: 0n, reserveB: 0n, totalPoolShares: 0n, poolSharesTrustLineCount: 1n }
      : { ...pool, poolSharesTrustLineCount: pool.poolSharesTrustLineCount + 1n }
  )
  return "ok"
}

/** Takes back what `joinPool` counted for `owner`; the last to leave takes the pool along. */
export const leavePool = (context: ApplyContext, id: Uint8Array, owner: PublicKey): void => {
  const { txn } = context
  const pool = poolOf(txn.load(poolKey(id)))!
  for (const asset of [pool.params.assetA, pool.params.assetB]) {
    const line = lineFor(context, owner, asset)
    if (line !== "none") txn.putTrustLine(withPoolUses(line!, -1))
  }
  const poolSharesTrustLineCount = pool.poolSharesTrustLineCount - 1n
  if (poolSharesTrustLineCount === 0n) txn.erase(poolKey(id))
  else putPool(context, id, { ...pool, poolSharesTrustLineCount })
}
