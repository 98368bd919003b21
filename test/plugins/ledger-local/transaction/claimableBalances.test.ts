// Claimable balances: claimants and their conditions, the reserve's payer, and each refusal of the operations.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Asset, Claimant, type Keypair, Operation, StrKey, xdr } from "@stellar/stellar-sdk"
import { LocalLedger } from "../../../../plugins/ledger-local/LocalLedger.ts"
import { accountKey, keyString, trustLineKey } from "../../../../plugins/ledger-local/engine/state/LedgerKeys.ts"
import { testnet } from "../../../../plugins/ledger-local/engine/state/NetworkSettings.ts"
import { publicKey } from "../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import {
  holds,
  isPredicateValid,
  withAbsoluteTimes
} from "../../../../plugins/ledger-local/transaction/operations/claimPredicate.ts"
import type { ClaimPredicate } from "../../../../plugins/ledger-local/transaction/Wire.ts"
import { feeBump, fund, send, transaction } from "../support.ts"
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
  test,
  together,
  withBody
} from "./classic.ts"

const create = (asset: Asset, amount: string, claimants: ReadonlyArray<Claimant>, source?: string) =>
  Operation.createClaimableBalance({
    asset,
    amount,
    claimants: [...claimants],
    ...(source === undefined ? {} : { source })
  })

const anyTime = (caller: Keypair): Claimant => new Claimant(caller.publicKey())

/** The id in the form of the operations' arguments, from a creation's result. */
const idIn = (result: any): string => `00000000${Buffer.from(result.balanceId.v0).toString("hex")}`
const claim = (balanceId: string) => Operation.claimClaimableBalance({ balanceId })
const strKey = (id: string): string => StrKey.encodeClaimableBalance(Buffer.from(id.slice(6), "hex"))

const created = Effect.fnUntraced(function* (
  source: Keypair,
  asset: Asset,
  amount: string,
  to: ReadonlyArray<Claimant>
) {
  const answer = yield* done(source, create(asset, amount, to))
  expect(answer.code).toBe("createClaimableBalanceSuccess")
  return { id: idIn(answer.result), events: answer.events }
})

const sep11 = (asset: Asset): string => `${asset.getCode()}:${asset.getIssuer()}`

describe("a claimable balance", () => {
  test(
    "a claimable balance reserves per claimant until it is claimed",
    Effect.gen(function* () {
      const [maker, taker, other] = [yield* fund("maker"), yield* fund("taker"), yield* fund("other")]
      const before = yield* counts(maker)
      const { id, events } = yield* created(maker, native, "25", [anyTime(taker), anyTime(other)])
      const between = yield* counts(maker)
      expect(before.balance - between.balance).toBe(25_0000000n + 100n)
      expect(between).toMatchObject({ sponsoring: 2, subentries: 0 })
      expect(events).toEqual([["transfer", maker.publicKey(), strKey(id), "native", 25_0000000n]])
      const [kept] = yield* entriesOf(4)
      expect(kept!.sponsor).toEqual(publicKey(maker.rawPublicKey()))
      const claimed = yield* done(taker, claim(id))
      expect(claimed.code).toBe("claimClaimableBalanceSuccess")
      expect(claimed.events).toEqual([["transfer", strKey(id), taker.publicKey(), "native", 25_0000000n]])
      expect(yield* counts(maker)).toMatchObject({ sponsoring: 0 })
      expect(yield* entriesOf(4)).toEqual([])
      expect(yield* code(other, claim(id))).toBe("claimClaimableBalanceDoesNotExist")
    })
  )

  test(
    "a claimable balance's id derives from source, sequence and index",
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const [maker, payer] = [yield* fund("maker"), yield* fund("payer")]
      const tx = yield* transaction(
        maker,
        [Operation.bumpSequence({ bumpTo: "0" }), create(native, "1", [anyTime(payer)], payer.publicKey())],
        { signers: [maker, payer] }
      )
      const expected = tx.getClaimableBalanceId(1)
      const sent = yield* send(feeBump(payer, "200", tx))
      expect(sent.status).toBe("PENDING")
      yield* ledger.close
      const [balance] = yield* entriesOf(4)
      expect(idIn({ balanceId: balance!.data.claimableBalance.balanceId })).toBe(expected)
      const key = xdr.LedgerKey.claimableBalance(
        new xdr.LedgerKeyClaimableBalance({
          balanceId: xdr.ClaimableBalanceId.fromXdr(expected, "hex")
        })
      )
      const { entries } = yield* ledger.call("getLedgerEntries", { keys: [key.toXdr("base64")] })
      expect(entries).toHaveLength(1)
    })
  )

  test(
    "an issuer's claimable balance is a mint, its claim a burn",
    Effect.gen(function* () {
      const { issuer, asset } = yield* issue("issuer", "GOLD")
      const holder = yield* fund("holder")
      yield* give(issuer, holder, asset, "100")
      const minted = yield* created(issuer, asset, "7", [anyTime(holder)])
      expect(minted.events).toEqual([["mint", strKey(minted.id), sep11(asset), 7_0000000n]])
      expect(yield* code(holder, claim(minted.id))).toBe("claimClaimableBalanceSuccess")
      expect((yield* lineOf(holder, asset))!.balance).toBe(107_0000000n)
      const back = yield* created(holder, asset, "5", [anyTime(issuer)])
      const burned = yield* done(issuer, claim(back.id))
      expect(burned.events).toEqual([["burn", strKey(back.id), sep11(asset), 5_0000000n]])
    })
  )

  test(
    "a claimable balance's reserve is paid by its creator's sponsor until it is claimed",
    Effect.gen(function* () {
      const [maker, taker, sponsor] = [yield* fund("maker"), yield* fund("taker"), yield* fund("sponsor")]
      const begin = Operation.beginSponsoringFutureReserves({
        sponsoredId: maker.publicKey(),
        source: sponsor.publicKey()
      })
      const end = Operation.endSponsoringFutureReserves({})
      const { codes } = yield* together(maker, [begin, create(native, "1", [anyTime(taker)]), end], [maker, sponsor])
      expect(codes[1]).toBe("createClaimableBalanceSuccess")
      expect(yield* counts(sponsor)).toMatchObject({ sponsoring: 1 })
      expect(yield* counts(maker)).toMatchObject({ sponsoring: 0, sponsored: 0 })
      const [{ data, sponsor: payer }] = (yield* entriesOf(4)) as [any]
      expect(payer).toEqual(publicKey(sponsor.rawPublicKey()))
      expect(yield* code(taker, claim(idIn(data.claimableBalance)))).toBe("claimClaimableBalanceSuccess")
      expect(yield* counts(sponsor)).toMatchObject({ sponsoring: 0 })
    })
  )

  test(
    "a claimable balance is claimed only while its condition holds",
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      // Every ledger takes one second: `early` may claim in the first of these two ledgers, and no longer in the
      // second.
      const [maker, early, late] = [yield* fund("maker"), yield* fund("early"), yield* fund("late")]
      const soon = Claimant.predicateBeforeRelativeTime("60")
      const to = [new Claimant(early.publicKey(), soon), new Claimant(late.publicKey(), Claimant.predicateNot(soon))]
      const first = yield* created(maker, native, "1", to)
      const second = yield* created(maker, native, "2", to)
      expect(yield* code(late, claim(first.id))).toBe("claimClaimableBalanceCannotClaim")
      expect(yield* code(maker, claim(first.id))).toBe("claimClaimableBalanceCannotClaim")
      yield* ledger.advanceSeconds(55)
      expect(yield* code(early, claim(first.id))).toBe("claimClaimableBalanceSuccess")
      yield* ledger.advanceSeconds(1)
      expect(yield* code(early, claim(second.id))).toBe("claimClaimableBalanceCannotClaim")
      expect(yield* code(late, claim(second.id))).toBe("claimClaimableBalanceSuccess")
    })
  )

  test(
    "creating a claimable balance needs funds, authorization and reserve",
    Effect.gen(function* () {
      const { issuer, asset } = yield* issue("issuer", "GOLD", 2)
      const [holder, taker] = [yield* fund("holder"), yield* fund("taker")]
      const one = (of: Asset, amount = "1") => create(of, amount, [anyTime(taker)])
      expect(yield* code(holder, one(asset))).toBe("createClaimableBalanceNoTrust")
      yield* give(issuer, holder, asset, "1")
      expect(yield* code(holder, one(asset, "1.0000001"))).toBe("createClaimableBalanceUnderfunded")
      expect(yield* code(holder, one(native, "9999"))).toBe("createClaimableBalanceUnderfunded")
      const leave = (authorized: boolean) =>
        Operation.setTrustLineFlags({ trustor: holder.publicKey(), asset, flags: { authorized } })
      yield* done(issuer, leave(false))
      expect(yield* code(holder, one(asset))).toBe("createClaimableBalanceNotAuthorized")
      yield* done(issuer, leave(true))
      yield* drain(holder, taker.publicKey(), 100n)
      expect(yield* code(holder, one(asset))).toBe("createClaimableBalanceLowReserve")
    })
  )

  test(
    "a claimable balance needs distinct claimants, an amount and valid conditions",
    Effect.gen(function* () {
      const [maker, taker] = [yield* fund("maker"), yield* fund("taker")]
      const malformed = "createClaimableBalanceMalformed"
      expect(yield* code(maker, withBody(create(native, "1", [anyTime(taker)]), { claimants: [] }))).toBe(malformed)
      expect(yield* code(maker, create(native, "1", [anyTime(taker), anyTime(taker)]))).toBe(malformed)
      expect(yield* code(maker, withBody(create(native, "1", [anyTime(taker)]), { amount: 0n }))).toBe(malformed)
      const nested = [1, 2, 3, 4].reduce((inner) => Claimant.predicateNot(inner), Claimant.predicateUnconditional())
      expect(yield* code(maker, create(native, "1", [new Claimant(taker.publicKey(), nested)]))).toBe(malformed)
      const assetCode = Buffer.from("GOLD".padEnd(12, "\0"))
      const asset = { type: 2, alphaNum12: { assetCode, issuer: publicKey(maker.rawPublicKey()) } }
      const bad = withBody(create(native, "1", [anyTime(taker)]), { asset })
      expect(yield* code(maker, bad)).toBe(malformed)
    })
  )

  test(
    "claiming requires an authorized trustline with room",
    Effect.gen(function* () {
      const { issuer, asset } = yield* issue("issuer", "GOLD", 2)
      const taker = yield* fund("taker")
      const { id } = yield* created(issuer, asset, "5", [anyTime(taker)])
      expect(yield* code(taker, claim(id))).toBe("claimClaimableBalanceNoTrust")
      yield* done(taker, Operation.changeTrust({ asset, limit: "4" }))
      expect(yield* code(taker, claim(id))).toBe("claimClaimableBalanceLineFull")
      const leave = (authorized: boolean) =>
        Operation.setTrustLineFlags({ trustor: taker.publicKey(), asset, flags: { authorized } })
      yield* done(issuer, leave(false))
      expect(yield* code(taker, claim(id))).toBe("claimClaimableBalanceNotAuthorized")
      yield* done(issuer, leave(true))
      yield* done(taker, Operation.changeTrust({ asset, limit: "5" }))
      expect(yield* code(taker, claim(id))).toBe("claimClaimableBalanceSuccess")
    })
  )

  const frozenKeys = new Set<string>()
  test(
    "pays nothing into an entry that the network has frozen",
    Effect.gen(function* () {
      const { asset, issuer } = yield* issue("issuer", "GOLD")
      const frozen = yield* fund("frozen")
      yield* done(frozen, Operation.changeTrust({ asset }))
      const { id } = yield* created(issuer, asset, "5", [anyTime(frozen)])
      const xlm = yield* created(issuer, native, "5", [anyTime(frozen)])
      const owner = publicKey(frozen.rawPublicKey())
      frozenKeys.add(keyString(trustLineKey(owner, asset.toTrustLineXdrObject().toXdrObject())))
      expect(yield* code(frozen, claim(id))).toBe("claimClaimableBalanceTrustlineFrozen")
      frozenKeys.add(keyString(accountKey(owner)))
      expect(yield* code(frozen, claim(xlm.id))).toBe("txFrozenKeyAccessed")
    }),
    { settings: { ...testnet, frozenKeys } }
  )

  test(
    "only the issuer of a clawback-enabled asset claws back a claimable balance",
    Effect.gen(function* () {
      const { issuer, asset } = yield* issue("issuer", "GOLD", 2 | 8)
      const { issuer: plain, asset: firm } = yield* issue("plain", "FIRM")
      const holder = yield* fund("holder")
      yield* give(issuer, holder, asset, "10")
      yield* give(plain, holder, firm, "10")
      const back = (id: string) => Operation.clawbackClaimableBalance({ balanceId: id })
      const gold = yield* created(holder, asset, "4", [anyTime(plain)])
      const mine = yield* created(issuer, asset, "1", [anyTime(plain)])
      const solid = yield* created(holder, firm, "4", [anyTime(plain)])
      const xlm = yield* created(holder, native, "4", [anyTime(plain)])
      expect(yield* code(plain, back(gold.id))).toBe("clawbackClaimableBalanceNotIssuer")
      expect(yield* code(issuer, back(xlm.id))).toBe("clawbackClaimableBalanceNotIssuer")
      expect(yield* code(plain, back(solid.id))).toBe("clawbackClaimableBalanceNotClawbackEnabled")
      const taken = yield* done(issuer, back(gold.id))
      expect(taken.code).toBe("clawbackClaimableBalanceSuccess")
      expect(taken.events).toEqual([["clawback", strKey(gold.id), sep11(asset), 4_0000000n]])
      expect(yield* counts(holder)).toMatchObject({ sponsoring: 2 })
      expect(yield* code(issuer, back(gold.id))).toBe("clawbackClaimableBalanceDoesNotExist")
      expect(yield* code(issuer, back(mine.id))).toBe("clawbackClaimableBalanceSuccess")
    })
  )
})

describe("a claim's condition", () => {
  const before = (absBefore: bigint): ClaimPredicate => ({ type: 4, absBefore })
  const after = (absBefore: bigint): ClaimPredicate => ({ type: 3, notPredicate: before(absBefore) })

  it("a claim condition ends at its second, and combines by and, or, not", () => {
    expect([holds(before(10n), 9n), holds(before(10n), 10n)]).toEqual([true, false])
    const window: ClaimPredicate = { type: 1, andPredicates: [after(10n), before(20n)] }
    expect([9n, 10n, 19n, 20n].map((now) => holds(window, now))).toEqual([false, true, true, false])
    const outside: ClaimPredicate = { type: 2, orPredicates: [before(10n), after(20n)] }
    expect([9n, 10n, 19n, 20n].map((now) => holds(outside, now))).toEqual([true, false, false, true])
    expect(holds({ type: 0 }, 0n)).toBe(true)
  })

  it("refuses a condition with missing branches, negative times or five levels", () => {
    const any: ClaimPredicate = { type: 0 }
    const not = (notPredicate: ClaimPredicate): ClaimPredicate => ({ type: 3, notPredicate })
    expect(isPredicateValid(not(not(not(any))))).toBe(true)
    expect(isPredicateValid(not(not(not(not(any)))))).toBe(false)
    expect(isPredicateValid({ type: 3, notPredicate: null })).toBe(false)
    expect(isPredicateValid({ type: 1, andPredicates: [any] })).toBe(false)
    expect(isPredicateValid({ type: 2, orPredicates: [] })).toBe(false)
    expect(isPredicateValid({ type: 2, orPredicates: [any, before(-1n)] })).toBe(false)
    expect(isPredicateValid({ type: 5, relBefore: -1n })).toBe(false)
    expect(isPredicateValid({ type: 1, andPredicates: [any, { type: 5, relBefore: 0n }] })).toBe(true)
  })

  it("relative times become absolute at every depth, capped at the maximum", () => {
    const relative = (relBefore: bigint): ClaimPredicate => ({ type: 5, relBefore })
    const last = 9_223_372_036_854_775_807n
    expect(
      withAbsoluteTimes(
        {
          type: 1,
          andPredicates: [
            { type: 3, notPredicate: relative(5n) },
            { type: 2, orPredicates: [relative(last), before(3n)] }
          ]
        },
        100n
      )
    ).toEqual({
      type: 1,
      andPredicates: [after(105n), { type: 2, orPredicates: [before(last), before(3n)] }]
    })
  })
})
