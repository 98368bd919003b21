// The payer of each reserve: sponsorships begun and ended within a transaction, and their transfer, for every kind of
// entry and for signers; each refusal, and the counts that must add up.
import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { Claimant, type Keypair, Operation, type xdr } from "@stellar/stellar-sdk"
import { LocalLedger } from "../../../../plugins/ledger-local/LocalLedger.ts"
import { accountKey, keyString } from "../../../../plugins/ledger-local/engine/state/LedgerKeys.ts"
import { type LedgerEntryData, publicKey } from "../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import { fund, keypair, usdcAsset } from "../support.ts"
import { code, counts, done, drain, entriesOf, native, test, together, withBody } from "./classic.ts"

const begin = (sponsor: Keypair, sponsored: Keypair) =>
  Operation.beginSponsoringFutureReserves({ sponsoredId: sponsored.publicKey(), source: sponsor.publicKey() })
const end = (sponsored: Keypair) => Operation.endSponsoringFutureReserves({ source: sponsored.publicKey() })

/** Applies operations while `sponsor` pays for `sponsored`; the codes of the operations in between. */
const under = Effect.fnUntraced(function* (
  sponsor: Keypair,
  sponsored: Keypair,
  operations: ReadonlyArray<xdr.Operation>,
  more: ReadonlyArray<Keypair> = []
) {
  const { codes, transaction } = yield* together(
    sponsored,
    [begin(sponsor, sponsored), ...operations, end(sponsored)],
    [sponsored, sponsor, ...more]
  )
  return { transaction, codes: codes.slice(1, -1) }
})

const trust = Operation.changeTrust({ asset: usdcAsset })

const sponsorsOf = <Type extends LedgerEntryData["type"]>(type: Type) =>
  Effect.map(entriesOf(type), (entries) =>
    entries.flatMap(({ sponsor }) => (sponsor === undefined || sponsor === null ? [] : [sponsor.ed25519]))
  )

/** The kinds that belong to an account: how each is made, and how its sponsorship is revoked. */
const subentries = {
  trustline: {
    type: 1 as const,
    make: () => trust,
    revoke: (owner: Keypair) => Operation.revokeTrustlineSponsorship({ account: owner.publicKey(), asset: usdcAsset })
  },
  offer: {
    type: 2 as const,
    make: (owner: Keypair) =>
      Operation.manageSellOffer({
        selling: native,
        buying: usdcAsset,
        amount: "1",
        price: "1",
        source: owner.publicKey()
      }),
    revoke: (owner: Keypair) => Operation.revokeOfferSponsorship({ seller: owner.publicKey(), offerId: "1" })
  },
  data: {
    type: 3 as const,
    make: () => Operation.manageData({ name: "word", value: "value" }),
    revoke: (owner: Keypair) => Operation.revokeDataSponsorship({ account: owner.publicKey(), name: "word" })
  }
}

describe("a sponsorship", () => {
  for (const [name, { type, make, revoke }] of Object.entries(subentries)) {
    test(
      `the sponsorship of an entry (${name}) moves between sponsors and owner`,
      Effect.gen(function* () {
        const [owner, one, two] = [yield* fund("owner"), yield* fund("one"), yield* fund("two")]
        if (name === "offer") yield* done(owner, trust)
        const own = yield* counts(owner)
        expect((yield* under(one, owner, [make(owner)])).codes[0]).toMatch(/Success$/)
        expect(yield* counts(owner)).toMatchObject({ subentries: own.subentries + 1, sponsored: 1, sponsoring: 0 })
        expect(yield* counts(one)).toMatchObject({ sponsoring: 1, sponsored: 0 })
        expect(yield* code(owner, revoke(owner))).toBe("revokeSponsorshipNotSponsor")
        const handed = yield* under(two, one, [revoke(owner)])
        expect(handed.codes).toEqual(["revokeSponsorshipSuccess"])
        expect([(yield* counts(one)).sponsoring, (yield* counts(two)).sponsoring]).toEqual([0, 1])
        expect(yield* counts(owner)).toMatchObject({ sponsored: 1 })
        expect(yield* sponsorsOf(type)).toEqual([two.rawPublicKey()])
        expect(yield* code(two, revoke(owner))).toBe("revokeSponsorshipSuccess")
        expect((yield* counts(two)).sponsoring).toBe(0)
        expect(yield* counts(owner)).toMatchObject({ subentries: own.subentries + 1, sponsored: 0 })
        expect(yield* sponsorsOf(type)).toEqual([])
        expect(yield* code(two, revoke(owner))).toBe("revokeSponsorshipNotSponsor")
        expect(yield* code(owner, revoke(owner))).toBe("revokeSponsorshipSuccess")
        expect((yield* under(two, owner, [revoke(owner)])).codes).toEqual(["revokeSponsorshipSuccess"])
        expect(yield* sponsorsOf(type)).toEqual([two.rawPublicKey()])
        expect(yield* counts(owner)).toMatchObject({ sponsored: 1 })
      })
    )
  }

  test(
    "the sponsorship of an account costs two reserves, at creation or later",
    Effect.gen(function* () {
      const [one, two] = [yield* fund("one"), yield* fund("two")]
      const fresh = keypair("fresh")
      const create = Operation.createAccount({
        destination: fresh.publicKey(),
        startingBalance: "1.5",
        source: one.publicKey()
      })
      expect((yield* under(one, fresh, [create], [])).transaction).toBe("txNoAccount")
      const made = yield* together(one, [begin(one, fresh), create, end(fresh)], [one, fresh])
      expect(made.codes[1]).toBe("createAccountSuccess")
      expect([(yield* counts(one)).sponsoring, (yield* counts(fresh)).sponsored]).toEqual([2, 2])
      const revoke = Operation.revokeAccountSponsorship({ account: fresh.publicKey() })
      expect((yield* under(two, one, [revoke])).codes).toEqual(["revokeSponsorshipSuccess"])
      expect([(yield* counts(one)).sponsoring, (yield* counts(two)).sponsoring]).toEqual([0, 2])
      expect(yield* code(two, revoke)).toBe("revokeSponsorshipSuccess")
      expect(yield* counts(fresh)).toMatchObject({ sponsored: 0 })
      const given = yield* together(
        two,
        [
          begin(two, fresh),
          Operation.revokeAccountSponsorship({ account: fresh.publicKey(), source: fresh.publicKey() }),
          end(fresh)
        ],
        [two, fresh]
      )
      expect(given.codes[1]).toBe("revokeSponsorshipSuccess")
      expect([(yield* counts(two)).sponsoring, (yield* counts(fresh)).sponsored]).toEqual([2, 2])
    })
  )

  test(
    "only its sponsor can transfer the sponsorship of a claimable balance",
    Effect.gen(function* () {
      const [maker, other] = [yield* fund("maker"), yield* fund("other")]
      yield* done(
        maker,
        Operation.createClaimableBalance({
          asset: native,
          amount: "1",
          claimants: [new Claimant(maker.publicKey()), new Claimant(other.publicKey())]
        })
      )
      const [{ data }] = (yield* entriesOf(4)) as [any]
      const balanceId = `00000000${Buffer.from(data.claimableBalance.balanceId.v0).toString("hex")}`
      const revoke = Operation.revokeClaimableBalanceSponsorship({ balanceId })
      expect(yield* code(maker, revoke)).toBe("revokeSponsorshipOnlyTransferable")
      expect(yield* code(other, revoke)).toBe("revokeSponsorshipNotSponsor")
      expect((yield* under(other, maker, [revoke])).codes).toEqual(["revokeSponsorshipSuccess"])
      expect([(yield* counts(maker)).sponsoring, (yield* counts(other)).sponsoring]).toEqual([0, 2])
      expect(yield* code(other, Operation.claimClaimableBalance({ balanceId }))).toBe("claimClaimableBalanceSuccess")
      expect((yield* counts(other)).sponsoring).toBe(0)
    })
  )

  test(
    "a signer's sponsorship moves like an entry's and keeps the signer's position",
    Effect.gen(function* () {
      const [owner, one, two] = [yield* fund("owner"), yield* fund("one"), yield* fund("two")]
      const keys = ["first", "second", "third"].map((name) => keypair(name).publicKey())
      const add = (key: string) => Operation.setOptions({ signer: { ed25519PublicKey: key, weight: 1 } })
      for (const key of keys) yield* done(owner, add(key))
      const revoke = Operation.revokeSignerSponsorship({
        account: owner.publicKey(),
        signer: { ed25519PublicKey: keys[1]! }
      })
      expect((yield* under(one, owner, [revoke])).codes).toEqual(["revokeSponsorshipSuccess"])
      const places = (yield* counts(owner)).signerSponsors
      expect(places).toHaveLength(3)
      expect(places.filter((sponsor) => sponsor !== null)).toEqual([one.publicKey()])
      const account = (yield* entriesOf(0)).find(
        ({ data }) => Buffer.compare(data.account.accountId.ed25519, owner.rawPublicKey()) === 0
      )!.data.account
      const at = account.signers.findIndex(
        ({ key }) => key.type === 0 && Buffer.compare(key.ed25519, keypair("second").rawPublicKey()) === 0
      )
      expect(places[at]).toBe(one.publicKey())
      expect(yield* code(owner, revoke)).toBe("revokeSponsorshipNotSponsor")
      expect((yield* under(two, one, [revoke])).codes).toEqual(["revokeSponsorshipSuccess"])
      expect((yield* counts(owner)).signerSponsors[at]).toBe(two.publicKey())
      expect([(yield* counts(one)).sponsoring, (yield* counts(two)).sponsoring]).toEqual([0, 1])
      expect(yield* code(two, revoke)).toBe("revokeSponsorshipSuccess")
      expect(yield* counts(owner)).toMatchObject({ sponsored: 0, signerSponsors: [null, null, null] })
      const missing = (account: string, key: string) =>
        Operation.revokeSignerSponsorship({ account, signer: { ed25519PublicKey: key } })
      expect(yield* code(owner, missing(owner.publicKey(), one.publicKey()))).toBe("revokeSponsorshipDoesNotExist")
      expect(yield* code(owner, missing(keypair("absent").publicKey(), keys[0]!))).toBe("revokeSponsorshipDoesNotExist")
    })
  )

  test(
    "a sponsorship returns to an owner that sponsors the revoking sponsor",
    Effect.gen(function* () {
      const [owner, one] = [yield* fund("owner"), yield* fund("one")]
      yield* under(one, owner, [trust])
      expect((yield* under(owner, one, [subentries.trustline.revoke(owner)])).codes).toEqual([
        "revokeSponsorshipSuccess"
      ])
      expect(yield* sponsorsOf(1)).toEqual([])
      expect(yield* counts(owner)).toMatchObject({ sponsored: 0, sponsoring: 0 })
    })
  )

  test(
    "a sponsorship moves only to an owner or sponsor with enough reserve",
    Effect.gen(function* () {
      const [owner, one, poor] = [yield* fund("owner"), yield* fund("one"), yield* fund("poor")]
      yield* under(one, owner, [trust])
      yield* drain(owner, one.publicKey(), 4_999_999n)
      yield* drain(poor, one.publicKey(), 4_999_999n)
      const revoke = subentries.trustline.revoke(owner)
      expect(yield* code(one, revoke)).toBe("revokeSponsorshipLowReserve")
      expect((yield* under(poor, one, [revoke])).codes).toEqual(["revokeSponsorshipLowReserve"])
      yield* done(one, Operation.payment({ destination: owner.publicKey(), asset: native, amount: "0.0000001" }))
      expect(yield* code(one, revoke)).toBe("revokeSponsorshipSuccess")
    })
  )

  test(
    "an account with the maximum sponsoring count takes no sponsorship",
    Effect.gen(function* () {
      const { ledger } = yield* LocalLedger
      const [owner, full] = [yield* fund("owner"), yield* fund("full")]
      yield* done(owner, trust)
      yield* under(full, owner, [subentries.data.make()])
      const entry = ledger.store.get(keyString(accountKey(publicKey(full.rawPublicKey()))))! as any
      const { account } = entry.data
      const v2 = { ...account.ext.v1.ext.v2, numSponsoring: 0xffff_ffff }
      const ext = { v: 1, v1: { ...account.ext.v1, ext: { v: 2, v2 } } }
      ledger.store.put({ ...entry, data: { type: 0, account: { ...account, balance: 3n * 10n ** 16n, ext } } })
      expect((yield* under(full, owner, [subentries.trustline.revoke(owner)])).codes).toEqual(["opTooManySponsoring"])
    })
  )

  test(
    "revoking a sponsorship requires an existing entry with a reserve",
    Effect.gen(function* () {
      const owner = yield* fund("owner")
      for (const { revoke } of Object.values(subentries))
        expect(yield* code(owner, revoke(owner))).toBe("revokeSponsorshipDoesNotExist")
      const of = (ledgerKey: object) => withBody(subentries.data.revoke(owner), { ledgerKey })
      const id = publicKey(owner.rawPublicKey())
      const issued = { assetCode: Buffer.from("GOLD"), issuer: id }
      const bad = [
        { type: 1, trustLine: { accountId: id, asset: { type: 1, alphaNum4: issued } } },
        { type: 2, offer: { sellerId: id, offerId: 0n } },
        { type: 5, liquidityPool: { liquidityPoolId: new Uint8Array(32) } }
      ]
      for (const key of bad) expect(yield* code(owner, of(key))).toBe("revokeSponsorshipMalformed")
      const unnamed = Operation.revokeDataSponsorship({ account: owner.publicKey(), name: "\u0007" })
      expect(yield* code(owner, unnamed)).toBe("revokeSponsorshipMalformed")
    })
  )

  test(
    "a sponsorship is not nested, begins only once, and must be ended",
    Effect.gen(function* () {
      const [a, b, c] = [yield* fund("a"), yield* fund("b"), yield* fund("c")]
      const second = (operations: ReadonlyArray<xdr.Operation>, signers: ReadonlyArray<Keypair>) =>
        Effect.map(together(a, operations, signers), ({ codes }) => codes[1])
      expect((yield* together(a, [begin(a, b)], [a])).transaction).toBe("txBadSponsorship")
      expect(yield* code(a, begin(a, a))).toBe("beginSponsoringFutureReservesMalformed")
      const twice = "beginSponsoringFutureReservesAlreadySponsored"
      expect(yield* second([begin(a, b), begin(c, b), end(b)], [a, b, c])).toBe(twice)
      const recursive = "beginSponsoringFutureReservesRecursive"
      expect(yield* second([begin(a, b), begin(b, c), end(b)], [a, b])).toBe(recursive)
      expect(yield* second([begin(b, c), begin(a, b), end(c)], [a, b, c])).toBe(recursive)
      expect(yield* code(a, end(a))).toBe("endSponsoringFutureReservesNotSponsored")
    })
  )
})
