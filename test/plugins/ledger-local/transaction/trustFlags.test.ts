// An issuer's operations on others' trustlines: grant, reduce and revoke authorization, and claw back; each refusal,
// and the events of each.
import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { Account, type Asset, type Keypair, MuxedAccount, Operation } from "@stellar/stellar-sdk"
import { USDC_ISSUER } from "../../../../plugins/ledger-local/node/accounts.ts"
import { fund, keypair, usdcAsset } from "../support.ts"
import { code, done, give, issue, lineOf, native, test, withBody } from "./classic.ts"

const AUTHORIZED = 1
const MAINTAIN = 2
const REVOCABLE = 2
const CLAWBACK = 8

const flags = (trustor: Keypair, asset: Asset, setFlags: number, clearFlags: number) =>
  withBody(Operation.setTrustLineFlags({ trustor: trustor.publicKey(), asset, flags: { authorized: true } }), {
    setFlags,
    clearFlags
  })

const allow = (trustor: Keypair, asset: Asset, authorize: number) =>
  withBody(Operation.allowTrust({ trustor: trustor.publicKey(), assetCode: asset.getCode(), authorize: true }), {
    authorize
  })

const named = (asset: Asset): string => `${asset.getCode()}:${asset.getIssuer()}`

describe("SetTrustLineFlags", () => {
  test(
    "SetTrustLineFlags emits the authorization each time, changed or not",
    Effect.gen(function* () {
      const { issuer, asset } = yield* issue("issuer", "GOLD", REVOCABLE)
      const holder = yield* fund("holder")
      yield* give(issuer, holder, asset, "5")
      const reported = (on: boolean) => [["set_authorized", holder.publicKey(), named(asset), on]]
      expect((yield* done(issuer, flags(holder, asset, AUTHORIZED, 0))).events).toEqual(reported(true))
      expect((yield* done(issuer, flags(holder, asset, MAINTAIN, AUTHORIZED))).events).toEqual(reported(false))
      expect((yield* done(issuer, flags(holder, asset, 0, MAINTAIN))).events).toEqual(reported(false))
      expect((yield* done(issuer, allow(holder, asset, AUTHORIZED))).events).toEqual(reported(true))
    })
  )

  test(
    "without the revocable flag, SetTrustLineFlags raises authorization only",
    Effect.gen(function* () {
      const { issuer, asset } = yield* issue("issuer", "GOLD", REVOCABLE)
      const holder = yield* fund("holder")
      yield* give(issuer, holder, asset, "5")
      yield* done(issuer, flags(holder, asset, MAINTAIN, AUTHORIZED))
      yield* done(issuer, Operation.setOptions({ clearFlags: REVOCABLE as never }))
      expect(yield* code(issuer, flags(holder, asset, 0, MAINTAIN))).toBe("setTrustLineFlagsCantRevoke")
      expect(yield* code(issuer, flags(holder, asset, AUTHORIZED, 0))).toBe("setTrustLineFlagsInvalidState")
      expect(yield* code(issuer, flags(holder, asset, AUTHORIZED, MAINTAIN))).toBe("setTrustLineFlagsSuccess")
      expect(yield* code(issuer, flags(holder, asset, MAINTAIN, AUTHORIZED))).toBe("setTrustLineFlagsCantRevoke")
      expect((yield* lineOf(holder, asset))!.flags).toBe(AUTHORIZED)
    })
  )

  test(
    "SetTrustLineFlags refuses foreign assets, oneself, invalid flags and missing lines",
    Effect.gen(function* () {
      const { issuer, asset } = yield* issue("issuer", "GOLD", REVOCABLE)
      const holder = yield* fund("holder")
      const malformed = "setTrustLineFlagsMalformed"
      expect(yield* code(issuer, flags(holder, asset, AUTHORIZED, 0))).toBe("setTrustLineFlagsNoTrustLine")
      expect(yield* code(holder, flags(issuer, asset, AUTHORIZED, 0))).toBe(malformed)
      expect(yield* code(issuer, flags(issuer, asset, AUTHORIZED, 0))).toBe(malformed)
      expect(yield* code(issuer, flags(holder, asset, AUTHORIZED, AUTHORIZED))).toBe(malformed)
      expect(yield* code(issuer, flags(holder, asset, AUTHORIZED | MAINTAIN, 0))).toBe(malformed)
      expect(yield* code(issuer, flags(holder, asset, 4, 0))).toBe(malformed)
      expect(yield* code(issuer, flags(holder, asset, 0, 8))).toBe(malformed)
      expect(yield* code(issuer, flags(holder, native, AUTHORIZED, 0))).toBe(malformed)
    })
  )
})

describe("AllowTrust", () => {
  test(
    "AllowTrust refuses as SetTrustLineFlags, with its own codes",
    Effect.gen(function* () {
      const { issuer, asset } = yield* issue("issuer", "GOLD")
      const holder = yield* fund("holder")
      expect(yield* code(issuer, allow(holder, asset, AUTHORIZED))).toBe("allowTrustNoTrustLine")
      yield* give(issuer, holder, asset, "5")
      expect(yield* code(issuer, allow(holder, asset, 0))).toBe("allowTrustCantRevoke")
      expect(yield* code(issuer, allow(holder, asset, MAINTAIN))).toBe("allowTrustCantRevoke")
      expect(yield* code(issuer, allow(issuer, asset, AUTHORIZED))).toBe("allowTrustMalformed")
      expect(yield* code(issuer, allow(holder, asset, 3))).toBe("allowTrustMalformed")
      expect(yield* code(issuer, allow(holder, asset, AUTHORIZED))).toBe("allowTrustSuccess")
    })
  )
})

describe("a line authorized to maintain liabilities", () => {
  test(
    "keeps its offers, which can still be taken",
    Effect.gen(function* () {
      const { issuer, asset } = yield* issue("issuer", "GOLD", REVOCABLE)
      const [maker, taker] = [yield* fund("maker"), yield* fund("taker")]
      yield* give(issuer, maker, asset, "10")
      yield* done(taker, Operation.changeTrust({ asset }))
      yield* done(maker, Operation.manageSellOffer({ selling: asset, buying: native, amount: "10", price: "1" }))
      yield* done(issuer, flags(maker, asset, MAINTAIN, AUTHORIZED))
      const take = Operation.manageSellOffer({ selling: native, buying: asset, amount: "4", price: "1" })
      expect(yield* code(taker, take)).toBe("manageSellOfferSuccess")
      expect((yield* lineOf(maker, asset))!.balance).toBe(6_0000000n)
      const pay = Operation.payment({ destination: taker.publicKey(), asset, amount: "1" })
      expect(yield* code(maker, pay)).toBe("paymentSrcNotAuthorized")
    })
  )
})

describe("Clawback", () => {
  test(
    "Clawback takes up to the free balance of a flagged line",
    Effect.gen(function* () {
      const { issuer, asset } = yield* issue("issuer", "GOLD", REVOCABLE | CLAWBACK)
      const { issuer: plain, asset: firm } = yield* issue("plain", "FIRM")
      const holder = yield* fund("holder")
      const back = (from: string, amount: string, of = asset) => Operation.clawback({ asset: of, amount, from })
      expect(yield* code(issuer, back(holder.publicKey(), "1"))).toBe("clawbackNoTrust")
      yield* give(issuer, holder, asset, "10")
      yield* give(plain, holder, firm, "10")
      expect(yield* code(plain, back(holder.publicKey(), "1", firm))).toBe("clawbackNotClawbackEnabled")
      expect(yield* code(plain, back(holder.publicKey(), "1"))).toBe("clawbackMalformed")
      expect(yield* code(issuer, back(issuer.publicKey(), "1"))).toBe("clawbackMalformed")
      const muxed = (of: Keypair): string => new MuxedAccount(new Account(of.publicKey(), "0"), "7").accountId()
      expect(yield* code(issuer, back(muxed(issuer), "1"))).toBe("clawbackNoTrust")
      yield* done(holder, Operation.manageSellOffer({ selling: asset, buying: native, amount: "4", price: "1" }))
      expect(yield* code(issuer, back(holder.publicKey(), "7"))).toBe("clawbackUnderfunded")
      const taken = yield* done(issuer, back(muxed(holder), "1"))
      expect(taken.code).toBe("clawbackSuccess")
      expect(taken.events).toEqual([["clawback", holder.publicKey(), named(asset), 1_0000000n]])
      yield* done(issuer, flags(holder, asset, 0, AUTHORIZED))
      expect(yield* code(issuer, back(holder.publicKey(), "9"))).toBe("clawbackSuccess")
      expect(yield* code(keypair("holder"), back(USDC_ISSUER, "1", usdcAsset))).toBe("clawbackMalformed")
    })
  )

  test(
    "an issuer disables Clawback for a line permanently",
    Effect.gen(function* () {
      const { issuer, asset } = yield* issue("issuer", "GOLD", REVOCABLE | CLAWBACK)
      const holder = yield* fund("holder")
      yield* give(issuer, holder, asset, "10")
      expect(yield* code(issuer, flags(holder, asset, 0, 4))).toBe("setTrustLineFlagsSuccess")
      const back = Operation.clawback({ asset, amount: "1", from: holder.publicKey() })
      expect(yield* code(issuer, back)).toBe("clawbackNotClawbackEnabled")
    })
  )
})
