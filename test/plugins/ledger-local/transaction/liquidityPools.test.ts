// Liquidity pools: lines of shares, deposits, withdrawals, path payments through them, the effect of an issuer's lost
// permission on shares, and each refusal of the operations.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Asset, type Keypair, type LiquidityPoolAsset, Operation, StrKey, xdr } from "@stellar/stellar-sdk"
import { LocalLedger } from "../../../../plugins/ledger-local/LocalLedger.ts"
import { accountKey, keyString, trustLineKey } from "../../../../plugins/ledger-local/engine/state/LedgerKeys.ts"
import { testnet } from "../../../../plugins/ledger-local/engine/state/NetworkSettings.ts"
import { type LedgerKey, publicKey } from "../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import {
  depositOf,
  swapReceiving,
  swapSending,
  withdrawalOf
} from "../../../../plugins/ledger-local/transaction/exchange/poolAmounts.ts"
import { areParametersValid } from "../../../../plugins/ledger-local/transaction/exchange/Pools.ts"
import { changeTrust } from "../../../../plugins/ledger-local/transaction/operations/changeTrust.ts"
import { fund, keypair } from "../support.ts"
import {
  code,
  counts,
  done,
  drain,
  entriesOf,
  give,
  issue,
  lineOf,
  native,
  poolId,
  sharesOf,
  test,
  together,
  withBody
} from "./classic.ts"

const INT64_MAX = 9_223_372_036_854_775_807n

const strKey = (shares: LiquidityPoolAsset): string => StrKey.encodeLiquidityPool(poolId(shares))
const named = (asset: Asset): string => (asset.isNative() ? "native" : `${asset.getCode()}:${asset.getIssuer()}`)

interface Bounds {
  readonly minPrice?: string
  readonly maxPrice?: string
}
const deposit = (shares: LiquidityPoolAsset, maxAmountA: string, maxAmountB: string, bounds: Bounds = {}) =>
  Operation.liquidityPoolDeposit({
    liquidityPoolId: poolId(shares).toString("hex"),
    maxAmountA,
    maxAmountB,
    minPrice: bounds.minPrice ?? "0.000001",
    maxPrice: bounds.maxPrice ?? "1000000"
  })
const withdraw = (shares: LiquidityPoolAsset, amount: string, minAmountA = "0", minAmountB = "0") =>
  Operation.liquidityPoolWithdraw({ liquidityPoolId: poolId(shares).toString("hex"), amount, minAmountA, minAmountB })

const pools = Effect.map(entriesOf(5), (entries) => entries.map(({ data }) => data.liquidityPool.body.constantProduct))

const REVOCABLE = 2
const CLAWBACK = 8

/** A holder with 1,000 GOLD and a line for the shares of XLM and GOLD. */
const market = Effect.fnUntraced(function* (flags = REVOCABLE) {
  const { issuer, asset: gold } = yield* issue("issuer", "GOLD", flags)
  const holder = yield* fund("holder")
  yield* give(issuer, holder, gold, "1000")
  const shares = sharesOf(native, gold)
  expect(yield* code(holder, Operation.changeTrust({ asset: shares }))).toBe("changeTrustSuccess")
  return { issuer, gold, holder, shares }
})

describe("a line of pool shares", () => {
  test(
    "the first share line creates a pool, the last removes it",
    Effect.gen(function* () {
      const { issuer, gold, holder, shares } = yield* market()
      expect((yield* counts(holder)).subentries).toBe(3)
      expect(yield* pools).toMatchObject([
        { reserveA: 0n, reserveB: 0n, totalPoolShares: 0n, poolSharesTrustLineCount: 1n, params: { fee: 30 } }
      ])
      expect((yield* lineOf(holder, poolId(shares)))!.flags).toBe(0)
      yield* done(holder, Operation.payment({ destination: issuer.publicKey(), asset: gold, amount: "1000" }))
      const close = Operation.changeTrust({ asset: gold, limit: "0" })
      expect(yield* code(holder, close)).toBe("changeTrustCannotDelete")
      expect(yield* code(issuer, Operation.changeTrust({ asset: shares }))).toBe("changeTrustSuccess")
      expect((yield* pools)[0]!.poolSharesTrustLineCount).toBe(2n)
      for (const owner of [issuer, holder])
        expect(yield* code(owner, Operation.changeTrust({ asset: shares, limit: "0" }))).toBe("changeTrustSuccess")
      expect(yield* pools).toEqual([])
      expect((yield* counts(holder)).subentries).toBe(1)
      expect(yield* code(holder, close)).toBe("changeTrustSuccess")
    })
  )

  test(
    "a share line needs authorized lines of both assets and reserves",
    Effect.gen(function* () {
      const { issuer, asset: gold } = yield* issue("issuer", "GOLD", REVOCABLE)
      const holder = yield* fund("holder")
      const shares = sharesOf(native, gold)
      const trust = Operation.changeTrust({ asset: shares })
      expect(yield* code(holder, trust)).toBe("changeTrustTrustLineMissing")
      yield* done(holder, Operation.changeTrust({ asset: gold }))
      const leave = (flags: object) =>
        done(issuer, Operation.setTrustLineFlags({ trustor: holder.publicKey(), asset: gold, flags }))
      yield* leave({ authorized: false })
      expect(yield* code(holder, trust)).toBe("changeTrustNotAuthMaintainLiabilities")
      yield* leave({ authorizedToMaintainLiabilities: true })
      expect(yield* code(holder, Operation.changeTrust({ asset: shares, limit: "0" }))).toBe("changeTrustInvalidLimit")
      yield* drain(holder, issuer.publicKey(), 9_999_999n)
      expect(yield* code(holder, trust)).toBe("changeTrustLowReserve")
      yield* done(issuer, Operation.payment({ destination: holder.publicKey(), asset: native, amount: "0.0000201" }))
      expect(yield* code(holder, trust)).toBe("changeTrustSuccess")
    })
  )

  test(
    "a line of pool shares costs its sponsor two reserves",
    Effect.gen(function* () {
      const { issuer, asset: gold } = yield* issue("issuer", "GOLD")
      const holder = yield* fund("holder")
      yield* give(issuer, holder, gold, "1")
      const { codes } = yield* together(
        holder,
        [
          Operation.beginSponsoringFutureReserves({ sponsoredId: holder.publicKey(), source: issuer.publicKey() }),
          Operation.changeTrust({ asset: sharesOf(native, gold) }),
          Operation.endSponsoringFutureReserves({})
        ],
        [holder, issuer]
      )
      expect(codes[1]).toBe("changeTrustSuccess")
      expect([(yield* counts(issuer)).sponsoring, (yield* counts(holder)).sponsored]).toEqual([2, 2])
    })
  )
})

describe("a pool's parameters", () => {
  it("pool parameters are an ordered pair of assets at the fixed fee", () => {
    const issued = (code: string) => ({
      type: 1 as const,
      alphaNum4: { assetCode: Buffer.from(code), issuer: publicKey(keypair("issuer").rawPublicKey()) }
    })
    const [xlm, gold, iron] = [{ type: 0 as const }, issued("GOLD"), issued("IRON")]
    expect(areParametersValid({ assetA: xlm, assetB: gold, fee: 30 })).toBe(true)
    expect(areParametersValid({ assetA: gold, assetB: iron, fee: 30 })).toBe(true)
    expect(areParametersValid({ assetA: iron, assetB: gold, fee: 30 })).toBe(false)
    expect(areParametersValid({ assetA: gold, assetB: gold, fee: 30 })).toBe(false)
    expect(areParametersValid({ assetA: gold, assetB: issued("IR\0N"), fee: 30 })).toBe(false)
    expect(areParametersValid({ assetA: xlm, assetB: gold, fee: 29 })).toBe(false)
    const line = { type: 3, liquidityPool: { type: 0, constantProduct: { assetA: iron, assetB: gold, fee: 30 } } }
    const body = { type: 6, changeTrustOp: { line, limit: 1n } }
    expect(changeTrust.check(body as never, { source: issued("GOLD").alphaNum4.issuer } as never)).toBe(-1)
  })
})

describe("LiquidityPoolDeposit", () => {
  test(
    "LiquidityPoolDeposit fills an empty pool freely, later in proportion, and emits both transfers",
    Effect.gen(function* () {
      const { gold, holder, shares, issuer } = yield* market()
      const first = yield* done(holder, deposit(shares, "100", "400"))
      expect(first.code).toBe("liquidityPoolDepositSuccess")
      expect(first.events).toEqual([
        ["transfer", holder.publicKey(), strKey(shares), "native", 100_0000000n],
        ["transfer", holder.publicKey(), strKey(shares), named(gold), 400_0000000n]
      ])
      expect((yield* lineOf(holder, poolId(shares)))!.balance).toBe(200_0000000n)
      yield* done(issuer, Operation.changeTrust({ asset: shares }))
      const second = yield* done(issuer, deposit(shares, "100", "40"))
      expect(second.events).toEqual([
        ["transfer", issuer.publicKey(), strKey(shares), "native", 10_0000000n],
        ["mint", strKey(shares), named(gold), 40_0000000n]
      ])
      expect(yield* pools).toMatchObject([
        { reserveA: 110_0000000n, reserveB: 440_0000000n, totalPoolShares: 220_0000000n, poolSharesTrustLineCount: 2n }
      ])
    })
  )

  test(
    "refuses in the network's order",
    Effect.gen(function* () {
      const { issuer, gold, holder, shares } = yield* market()
      const stranger = yield* fund("stranger")
      const is = (operation: xdr.Operation, expected: string, caller: Keypair = holder) =>
        Effect.map(code(caller, operation), (answer) => expect(answer).toBe(`liquidityPoolDeposit${expected}`))
      const raw = (parts: object) => withBody(deposit(shares, "1", "1"), parts)
      const price = (n: number, d: number) => ({ n, d })
      yield* is(raw({ maxAmountA: 0n }), "Malformed")
      yield* is(raw({ maxAmountB: -1n }), "Malformed")
      yield* is(raw({ minPrice: price(0, 1) }), "Malformed")
      yield* is(raw({ maxPrice: price(1, 0) }), "Malformed")
      yield* is(raw({ minPrice: price(2, 1), maxPrice: price(1, 1) }), "Malformed")
      yield* is(deposit(shares, "1", "1"), "NoTrust", stranger)
      const leave = (flags: object) =>
        done(issuer, Operation.setTrustLineFlags({ trustor: holder.publicKey(), asset: gold, flags }))
      yield* leave({ authorized: false, authorizedToMaintainLiabilities: true })
      yield* is(deposit(shares, "1", "1"), "NotAuthorized")
      yield* leave({ authorized: true, authorizedToMaintainLiabilities: false })
      yield* is(deposit(shares, "1", "1001"), "Underfunded")
      yield* is(deposit(shares, "20000", "1"), "Underfunded")
      yield* is(deposit(shares, "100", "400", { minPrice: "0.26" }), "BadPrice")
      yield* is(deposit(shares, "100", "400", { maxPrice: "0.24" }), "BadPrice")
      yield* done(holder, Operation.changeTrust({ asset: shares, limit: "199.9999999" }))
      yield* is(deposit(shares, "100", "400"), "LineFull")
      yield* done(holder, Operation.changeTrust({ asset: shares, limit: "200.9999999" }))
      yield* is(deposit(shares, "100", "400"), "Success")
      yield* is(deposit(shares, "1", "4"), "LineFull")
      yield* is(deposit(shares, "100", "400.0000001", { minPrice: "0.26" }), "BadPrice")
      yield* is(raw({ maxAmountA: 1n, maxAmountB: 1n }), "BadPrice")
    })
  )

  test(
    "refuses a deposit beyond the pool's limits",
    Effect.gen(function* () {
      const { issuer, asset: gold } = yield* issue("issuer", "GOLD")
      const pair = sharesOf(gold, new Asset("SILVER", issuer.publicKey()))
      yield* done(issuer, Operation.changeTrust({ asset: pair }))
      const most = withBody(deposit(pair, "1", "1"), { maxAmountA: INT64_MAX, maxAmountB: INT64_MAX / 1_000n })
      expect(yield* code(issuer, most)).toBe("liquidityPoolDepositSuccess")
      expect(yield* code(issuer, most)).toBe("liquidityPoolDepositPoolFull")
    })
  )
})

describe("LiquidityPoolWithdraw", () => {
  test(
    "LiquidityPoolWithdraw returns the shares' part of both reserves, rounded down",
    Effect.gen(function* () {
      const { issuer, gold, holder, shares } = yield* market()
      yield* done(holder, deposit(shares, "100", "400"))
      const flags = { authorized: false, authorizedToMaintainLiabilities: true }
      yield* done(issuer, Operation.setTrustLineFlags({ trustor: holder.publicKey(), asset: gold, flags }))
      const taken = yield* done(holder, withdraw(shares, "66.6666667"))
      expect(taken.code).toBe("liquidityPoolWithdrawSuccess")
      expect(taken.events).toEqual([
        ["transfer", strKey(shares), holder.publicKey(), "native", 33_3333333n],
        ["transfer", strKey(shares), holder.publicKey(), named(gold), 133_3333334n]
      ])
      expect(yield* code(holder, withdraw(shares, "133.3333333"))).toBe("liquidityPoolWithdrawSuccess")
      expect(yield* pools).toMatchObject([{ reserveA: 0n, reserveB: 0n, totalPoolShares: 0n }])
      expect((yield* lineOf(holder, gold))!.balance).toBe(1000_0000000n)
    })
  )

  test(
    "refuses in the network's order",
    Effect.gen(function* () {
      const { issuer, gold, holder, shares } = yield* market()
      yield* done(holder, deposit(shares, "100", "400"))
      const is = (operation: xdr.Operation, expected: string, caller: Keypair = holder) =>
        Effect.map(code(caller, operation), (answer) => expect(answer).toBe(`liquidityPoolWithdraw${expected}`))
      const raw = (parts: object) => withBody(withdraw(shares, "1"), parts)
      yield* is(raw({ amount: 0n }), "Malformed")
      yield* is(raw({ minAmountA: -1n }), "Malformed")
      yield* is(raw({ minAmountB: -1n }), "Malformed")
      yield* is(withdraw(shares, "1"), "NoTrust", issuer)
      yield* is(withdraw(shares, "200.0000001"), "Underfunded")
      yield* is(withdraw(shares, "2", "1.0000001"), "UnderMinimum")
      yield* is(withdraw(shares, "2", "1", "4.0000001"), "UnderMinimum")
      yield* done(holder, Operation.changeTrust({ asset: gold, limit: "601" }))
      yield* is(withdraw(shares, "2"), "LineFull")
      yield* is(withdraw(shares, "0.5"), "Success")
    })
  )
})

describe("pools switched off by validators or the network", () => {
  const frozenKeys = new Set<string>()
  const frozen = Effect.gen(function* () {
    const { holder, shares } = yield* market()
    frozenKeys.add(key)
    expect(yield* code(holder, deposit(shares, "1", "1"))).toBe("liquidityPoolDepositTrustlineFrozen")
    const { ledger } = yield* LocalLedger
    const line = trustLineKey(publicKey(holder.rawPublicKey()), { type: 3, liquidityPoolId: poolId(shares) })
    const entry = ledger.store.get(keyString(line))! as any
    ledger.store.put({ ...entry, data: { type: 1, trustLine: { ...entry.data.trustLine, balance: 5n } } })
    expect(yield* code(holder, withBody(withdraw(shares, "1"), { amount: 5n }))).toBe(
      "liquidityPoolWithdrawTrustlineFrozen"
    )
  })
  const gold = new Asset("GOLD", keypair("issuer").publicKey()).toTrustLineXdrObject().toXdrObject()
  const key = keyString(trustLineKey(publicKey(keypair("holder").rawPublicKey()), gold))
  test("deposits and withdrawals fail with a frozen line", frozen, { settings: { ...testnet, frozenKeys } })

  test(
    "switched-off pools refuse deposits, withdrawals and path payments",
    Effect.gen(function* () {
      const { ledger } = yield* LocalLedger
      const { holder, shares } = yield* market()
      expect(yield* code(holder, deposit(shares, "1", "1"))).toBe("opNotSupported")
      expect(yield* code(holder, withdraw(shares, "1"))).toBe("opNotSupported")
      const [entry] = [...ledger.store.entries()].filter(({ data }) => data.type === 5) as any
      const { liquidityPool } = entry.data
      const constantProduct = { ...liquidityPool.body.constantProduct, reserveA: 10n ** 9n, reserveB: 10n ** 9n }
      const body = { ...liquidityPool.body, constantProduct }
      ledger.store.put({ ...entry, data: { type: 5, liquidityPool: { ...liquidityPool, body } } })
      const { assetB } = shares.getLiquidityPoolParameters()
      const send = pathSend(holder, native, "1", assetB, "0.1")
      expect(yield* code(holder, send)).toBe("pathPaymentStrictSendTooFewOffers")
    }),
    { settings: { ...testnet, ledgerFlags: 7 } }
  )
})

const pathSend = (to: Keypair, sendAsset: Asset, sendAmount: string, destAsset: Asset, destMin: string) =>
  Operation.pathPaymentStrictSend({ sendAsset, sendAmount, destination: to.publicKey(), destAsset, destMin, path: [] })
const pathReceive = (to: Keypair, sendAsset: Asset, sendMax: string, destAsset: Asset, destAmount: string) =>
  Operation.pathPaymentStrictReceive({
    sendAsset,
    sendMax,
    destination: to.publicKey(),
    destAsset,
    destAmount,
    path: []
  })

describe("a path payment", () => {
  test(
    "a path payment uses the pool at its price and fee, with two transfers",
    Effect.gen(function* () {
      const { gold, holder, shares } = yield* market()
      yield* done(holder, deposit(shares, "100", "400"))
      const sent = yield* done(holder, pathSend(holder, native, "10", gold, "1"))
      const received = (9_970n * 400_0000000n * 10_0000000n) / (10_000n * 100_0000000n + 9_970n * 10_0000000n)
      expect(sent.result.success).toMatchObject({
        offers: [{ type: 2, liquidityPool: { amountSold: received, amountBought: 10_0000000n } }],
        last: { amount: received }
      })
      expect(sent.events).toEqual([
        ["transfer", holder.publicKey(), strKey(shares), "native", 10_0000000n],
        ["transfer", strKey(shares), holder.publicKey(), named(gold), received],
        ["transfer", holder.publicKey(), holder.publicKey(), named(gold), received]
      ])
      const [pool] = yield* pools
      expect(pool).toMatchObject({ reserveA: 110_0000000n, reserveB: 400_0000000n - received })
      const back = yield* done(holder, pathReceive(holder, gold, "1000", native, "10"))
      const due = 10_000n * pool!.reserveB * 10_0000000n
      const divisor = 100_0000000n * 9_970n
      expect(back.result.success.offers[0].liquidityPool.amountBought).toBe((due + divisor - 1n) / divisor)
      expect(yield* code(holder, pathReceive(holder, gold, "1000", native, "100"))).toBe(
        "pathPaymentStrictReceiveTooFewOffers"
      )
    })
  )

  test(
    "prefers the book only if strictly cheaper, else the pool",
    Effect.gen(function* () {
      const { issuer, gold, holder, shares } = yield* market()
      const maker = yield* fund("maker")
      yield* give(issuer, maker, gold, "1000")
      yield* done(holder, deposit(shares, "100", "400"))
      const by = Effect.fnUntraced(function* (payer: Keypair) {
        const { result } = yield* done(payer, pathSend(holder, native, "1", gold, "0.1"))
        return result.success.offers.map(({ type }: any) => (type === 2 ? "pool" : "book"))
      })
      const sell = (amount: string, price: string, offerId = "0") =>
        done(maker, Operation.manageSellOffer({ selling: gold, buying: native, amount, price, offerId }))
      yield* sell("100", "0.26")
      expect(yield* by(holder)).toEqual(["pool"])
      yield* sell("100", "0.25", "1")
      expect(yield* by(holder)).toEqual(["book"])
      expect(yield* by(maker)).toEqual(["pool"])
      expect((yield* entriesOf(2)).map(({ data }) => data.offer.amount)).toEqual([96_0000000n])
      yield* sell("2", "0.2", "1")
      expect(yield* by(holder)).toEqual(["pool"])
    })
  )

  /** Pays through the pool past a thousand and one small, more expensive offers; returns the outcome. */
  const pastOffers = Effect.gen(function* () {
    const { issuer, gold, holder, shares } = yield* market()
    yield* done(holder, deposit(shares, "100", "400"))
    const offer = Operation.manageSellOffer({ selling: gold, buying: native, amount: "0.00001", price: "1" })
    const maker = yield* fund("maker")
    yield* give(issuer, maker, gold, "1")
    yield* done(maker, offer)
    const { ledger } = yield* LocalLedger
    // A thousand more like it, promised for by the same account.
    const put = (key: LedgerKey, change: (data: any) => object): void => {
      const entry = ledger.store.get(keyString(key))!
      ledger.store.put({ ...entry, data: change(entry.data) as never })
    }
    const promised = {
      ext: { v: 1 as const, v1: { liabilities: { buying: 0n, selling: 100_100n }, ext: { v: 0 as const } } }
    }
    const [first] = yield* entriesOf(2)
    for (let offerId = 2n; offerId <= 1_001n; offerId++)
      ledger.store.put({
        lastModifiedLedgerSeq: ledger.latest.sequence,
        data: { type: 2, offer: { ...first!.data.offer, offerId } },
        ext: { v: 0 }
      })
    const id = publicKey(maker.rawPublicKey())
    put(trustLineKey(id, gold.toTrustLineXdrObject().toXdrObject()), (data) => ({
      type: 1,
      trustLine: { ...data.trustLine, ...promised }
    }))
    put(accountKey(id), ({ account }) => {
      const liabilities = { buying: 100_100n, selling: 0n }
      return {
        type: 0,
        account: { ...account, numSubEntries: 1_002, ext: { v: 1, v1: { ...account.ext.v1, liabilities } } }
      }
    })
    return yield* code(holder, pathSend(holder, native, "1", gold, "0.1"))
  })

  test(
    "offers tried before a pool count against the operation's limit",
    Effect.gen(function* () {
      expect(yield* pastOffers).toBe("opExceededWorkLimit")
    })
  )

  test(
    "did not count tried offers before protocol 27",
    Effect.gen(function* () {
      expect(yield* pastOffers).toBe("pathPaymentStrictSendSuccess")
    }),
    { settings: { ...testnet, protocolVersion: 26 } }
  )

  test(
    "prefers the pool at equal price",
    Effect.gen(function* () {
      const { issuer, gold, holder, shares } = yield* market()
      const maker = yield* fund("maker")
      yield* give(issuer, maker, gold, "1000")
      yield* done(holder, deposit(shares, "1", "2"))
      const { received } = swapSending(1_0000000n, 2_0000000n, 1_0000000n)!
      const price = { n: 1_0000000, d: Number(received) }
      const raw = Operation.manageSellOffer({ selling: gold, buying: native, amount: "1", price: "1" })
      yield* done(maker, withBody(raw, { amount: received, price }))
      const { result } = yield* done(holder, pathSend(holder, native, "1", gold, "0.1"))
      expect(result.success).toMatchObject({ offers: [{ type: 2 }], last: { amount: received } })
    })
  )
})

describe("revoked authorization", () => {
  const revoke = (holder: Keypair, asset: Asset, source?: Keypair) =>
    Operation.setTrustLineFlags({
      trustor: holder.publicKey(),
      asset,
      flags: { authorized: false },
      ...(source === undefined ? {} : { source: source.publicKey() })
    })

  test(
    "revocation turns shares into claimable balances and closes the line",
    Effect.gen(function* () {
      const { issuer, gold, holder, shares } = yield* market(REVOCABLE | CLAWBACK)
      yield* done(issuer, Operation.changeTrust({ asset: shares }))
      yield* done(issuer, deposit(shares, "1", "4"))
      yield* done(holder, deposit(shares, "100", "400"))
      const revoked = yield* done(issuer, revoke(holder, gold))
      expect(revoked.code).toBe("setTrustLineFlagsSuccess")
      expect(yield* lineOf(holder, poolId(shares))).toBeUndefined()
      const balances = (yield* entriesOf(4)).map(({ data, sponsor }) => ({ ...data.claimableBalance, sponsor }))
      expect(balances.map(({ amount }) => amount).sort()).toEqual([100_0000000n, 400_0000000n])
      expect(balances.map(({ ext, asset }) => [asset.type, ext.v]).sort()).toEqual([
        [0, 0],
        [1, 1]
      ])
      const ids = [native, gold].map((asset) => {
        const { balanceId } = balances.find(({ asset: { type } }) => (type === 0) === asset.isNative())!
        return StrKey.encodeClaimableBalance(Buffer.concat([Buffer.from([0]), balanceId.v0]))
      })
      expect(revoked.events).toEqual([
        ["transfer", strKey(shares), ids[0], "native", 100_0000000n],
        ["transfer", strKey(shares), ids[1], named(gold), 400_0000000n],
        ["set_authorized", holder.publicKey(), named(gold), false]
      ])
      expect(yield* counts(holder)).toMatchObject({ subentries: 1, sponsoring: 2 })
      expect(yield* pools).toMatchObject([{ reserveA: 1_0000000n, reserveB: 4_0000000n, poolSharesTrustLineCount: 1n }])
      for (const { balanceId, asset } of balances) {
        const id = `00000000${Buffer.from(balanceId.v0).toString("hex")}`
        expect(yield* code(holder, Operation.claimClaimableBalance({ balanceId: id }))).toBe(
          `claimClaimableBalance${asset.type === 0 ? "Success" : "NotAuthorized"}`
        )
      }
      yield* done(holder, Operation.payment({ destination: issuer.publicKey(), asset: native, amount: "1" }))
    })
  )

  test(
    "revocation burns the issuer's own share and removes an empty line",
    Effect.gen(function* () {
      const { issuer, gold, holder, shares } = yield* market()
      const { issuer: other, asset: silver } = yield* issue("other", "SILVER", REVOCABLE)
      yield* give(other, issuer, silver, "100")
      const pair = sharesOf(gold, silver)
      yield* done(issuer, Operation.changeTrust({ asset: pair }))
      expect(yield* code(issuer, deposit(pair, "10", "10"))).toBe("liquidityPoolDepositSuccess")
      const revoked = yield* done(other, revoke(issuer, silver))
      expect(revoked.events[0]).toEqual(["burn", strKey(pair), named(gold), 10_0000000n])
      expect(yield* code(issuer, revoke(holder, gold))).toBe("setTrustLineFlagsSuccess")
      expect(yield* lineOf(holder, poolId(shares))).toBeUndefined()
      expect(yield* pools).toEqual([])
      expect((yield* entriesOf(4)).map(({ data }) => data.claimableBalance.amount)).toEqual([10_0000000n])
    })
  )

  test(
    "charges the current sponsor of the line's payer for the balances, or fails",
    Effect.gen(function* () {
      const { issuer, gold, holder, shares } = yield* market()
      const poor = yield* fund("poor")
      yield* done(holder, deposit(shares, "100", "400"))
      const sandwich = (operation: xdr.Operation) => [
        Operation.beginSponsoringFutureReserves({ sponsoredId: holder.publicKey(), source: poor.publicKey() }),
        operation,
        Operation.endSponsoringFutureReserves({ source: holder.publicKey() })
      ]
      const allow = withBody(
        Operation.allowTrust({ trustor: holder.publicKey(), assetCode: "GOLD", authorize: true }),
        { authorize: 0 }
      )
      yield* drain(poor, issuer.publicKey(), 9_999_999n)
      const all = [issuer, poor, holder]
      expect((yield* together(issuer, sandwich(revoke(holder, gold)), all)).codes[1]).toBe(
        "setTrustLineFlagsLowReserve"
      )
      expect((yield* together(issuer, sandwich(allow), all)).codes[1]).toBe("allowTrustLowReserve")
      yield* done(issuer, Operation.payment({ destination: poor.publicKey(), asset: native, amount: "1" }))
      expect((yield* together(issuer, sandwich(allow), all)).codes[1]).toBe("allowTrustSuccess")
      expect([(yield* counts(poor)).sponsoring, (yield* counts(holder)).sponsoring]).toEqual([2, 0])
    })
  )

  test(
    "revocation reuses the line's reserve, although its payer is short",
    Effect.gen(function* () {
      const { issuer, gold, holder, shares } = yield* market()
      yield* done(holder, deposit(shares, "100", "400"))
      yield* drain(holder, issuer.publicKey())
      expect(yield* code(issuer, revoke(holder, gold))).toBe("setTrustLineFlagsSuccess")
      expect(yield* counts(holder)).toMatchObject({ sponsoring: 2, subentries: 1 })
    })
  )
})

describe("the amounts of a pool", () => {
  /** A small generator with a seed, so that a failure can be seen again. */
  const SEED = 18
  let state = SEED
  const random = (bits: number): bigint => {
    let value = 0n
    for (let i = 0; i < 4; i++) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
      value = (value << 16n) | BigInt(state >>> 16)
    }
    return 1n + (value % (1n << BigInt(1 + (state % bits))))
  }

  it(`trades never lower the product of a pool's reserves (seed ${SEED})`, () => {
    let traded = 0
    for (let i = 0; i < 5_000; i++) {
      const [reserveIn, reserveOut, amount] = [random(62), random(62), random(62)]
      for (const swap of [swapSending(reserveIn, reserveOut, amount), swapReceiving(reserveIn, reserveOut, amount)]) {
        if (swap === undefined) continue
        traded++
        expect((reserveIn + swap.sent) * (reserveOut - swap.received) >= reserveIn * reserveOut).toBe(true)
        expect(swap.received < reserveOut && reserveIn + swap.sent <= INT64_MAX).toBe(true)
      }
      const exact = swapReceiving(reserveIn, reserveOut, amount)
      if (exact !== undefined && exact.sent > 0n)
        expect(swapSending(reserveIn, reserveOut, exact.sent)!.received >= amount).toBe(true)
    }
    expect(traded).toBeGreaterThan(2_000)
  })

  it(`a depositor never withdraws more than was deposited (seed ${SEED})`, () => {
    for (let i = 0; i < 5_000; i++) {
      const first = depositOf({ reserveA: 0n, reserveB: 0n, totalPoolShares: 0n }, random(60), random(60))
      expect(first.shares * first.shares <= first.amountA * first.amountB).toBe(true)
      expect((first.shares + 1n) ** 2n > first.amountA * first.amountB).toBe(true)
      const pool = { reserveA: first.amountA, reserveB: first.amountB, totalPoolShares: first.shares }
      const [mostA, mostB] = [random(60), random(60)]
      const { amountA, amountB, shares } = depositOf(pool, mostA, mostB)
      expect(amountA <= mostA && amountB <= mostB).toBe(true)
      const after = {
        reserveA: pool.reserveA + amountA,
        reserveB: pool.reserveB + amountB,
        totalPoolShares: pool.totalPoolShares + shares
      }
      expect(withdrawalOf(shares, after, after.reserveA) <= amountA).toBe(true)
      expect(withdrawalOf(shares, after, after.reserveB) <= amountB).toBe(true)
      expect(withdrawalOf(after.totalPoolShares, after, after.reserveA)).toBe(after.reserveA)
    }
  })
})
