// Which source's text is listed, which events use up the daily quotas, when a listing is dead, and how a listing earns
// rank: each rule on the tables themselves.
import { expect, layer } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { createHash } from "node:crypto"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { describeDatabases } from "../../support/databases.ts"
import { timed } from "../../support/timed.ts"
import { answerOf, openStore, type Said, shop } from "./store.ts"

const day = 86_400_000
const held = { decision: "held", reason: "awaits_origin" }
const used = { decision: "rejected", reason: "catalog_unavailable" }

const lies: ReadonlyArray<Said> = [
  { description: "Evil" },
  { amount: "1" },
  { asset: "CEVIL" },
  { method: "POST" },
  { description: "Evil", amount: "1" }
]

describeDatabases(
  "the grades of a listing",
  (database) => {
    const services = Facts.layer.pipe(Layer.provideMerge(database), Layer.provideMerge(Supervisor.layer))
    layer(services, { timeout: "240 seconds", excludeTestServices: true })((it) => {
      it.effect(
        "a first declaration is claimed, later claims only request a probe [S23][S256]",
        timed(
          Effect.gen(function* () {
            const { declare, listing, now, prices, sql } = yield* openStore()
            expect(yield* declare()).toMatchObject({ decision: "listed" })
            expect(yield* declare()).toMatchObject({ decision: "unchanged" })
            yield* sql`update catalog_probes set asked_at = ${yield* now}, due_at = ${new Date(4e12)}`
            for (const lie of lies) {
              expect(yield* declare(lie, { payer: "GEVIL" })).toMatchObject(held)
              expect(yield* declare(lie, { payer: "GEVIL", stage: "settled" })).toMatchObject(held)
            }
            expect(yield* listing).toMatchObject({ grade: "claimed", version: 1, description: "A thing" })
            expect(yield* prices).toEqual(["5"])
            const [probe] = yield* sql<{ due_at: Date }>`select due_at from catalog_probes`
            expect(probe!.due_at.getTime()).toBe((yield* now).getTime() + 60_000)
            expect(yield* declare({ payTo: "GOTHER" })).toMatchObject({ reason: "payto_conflict" })
          })
        )
      )

      it.effect(
        "the recipient's declaration replaces a claim; its operations and prices accumulate",
        timed(
          Effect.gen(function* () {
            const { declare, listing, prices, sql } = yield* openStore()
            const own = { grade: "declared" } as const
            yield* declare({ description: "Squatted", method: "POST" })
            expect(yield* declare({}, own)).toMatchObject({ decision: "updated" })
            expect(yield* listing).toMatchObject({ grade: "declared", version: 2, description: "A thing" })
            // The claimed data is not part of it.
            expect(yield* prices).toEqual(["5"])
            expect(yield* declare({ method: "POST", amount: "7" }, own)).toMatchObject({ decision: "updated" })
            expect(yield* prices).toEqual(["5", "7"])
            for (const lie of [...lies, { method: "PUT" }])
              expect(yield* declare(lie, { payer: "GEVIL" })).toMatchObject(held)
            expect(yield* declare({ amount: "6" }, own)).toMatchObject({ decision: "updated" })
            expect([...(yield* prices)].sort()).toEqual(["6", "7"])
            expect(yield* declare({ amount: "8" }, own)).toMatchObject({ ...used, detail: /versions/ })
            const kept = yield* sql<{ grade: string; description: string }>`select grade,
              document::jsonb->>'description' as description from catalog_words order by grade`
            expect(kept).toEqual([
              { grade: "claimed", description: "Squatted" },
              { grade: "declared", description: "A thing" }
            ])
          })
        )
      )

      it.effect(
        "a grade rises without a new version when a higher source agrees",
        timed(
          Effect.gen(function* () {
            const { declare, listing, probe: read } = yield* openStore()
            yield* declare()
            expect(yield* declare({}, { grade: "declared" })).toMatchObject({ decision: "unchanged" })
            expect(yield* listing).toMatchObject({ grade: "declared", version: 1 })
            yield* declare()
            expect(yield* listing).toMatchObject({ grade: "declared" })
            expect(yield* read(answerOf({ said: [{}] }))).toBe(true)
            expect(yield* listing).toMatchObject({ grade: "origin", version: 1, ownership: "proven" })
            yield* declare({}, { grade: "declared" })
            expect(yield* listing).toMatchObject({ grade: "origin" })
          })
        )
      )

      it.effect(
        "once its origin answers, a listing changes by its origin alone [S317]",
        timed(
          Effect.gen(function* () {
            const { declare, listing, probe, prices } = yield* openStore()
            yield* declare({ description: "Claimed" })
            yield* probe(answerOf({ said: [{ description: "Origin" }, { description: "Origin", method: "HEAD" }] }))
            expect(yield* listing).toMatchObject({ grade: "origin", version: 2, description: "Origin" })
            for (const lie of lies) {
              expect(yield* declare(lie, { payer: "GEVIL", stage: "settled" })).toMatchObject(held)
              expect(yield* declare(lie, { grade: "declared" })).toMatchObject(held)
            }
            expect(yield* declare({ description: "Origin" })).toMatchObject({ decision: "unchanged" })
            yield* probe(answerOf({ said: [{ description: "Dearer", amount: "50" }] }))
            expect(yield* listing).toMatchObject({ grade: "origin", version: 3, description: "Dearer" })
            expect(yield* prices).toEqual(["50"])
            expect(yield* probe(answerOf({ said: [{ description: "Dearer", amount: "50" }] }))).toBe(false)
          })
        )
      )

      it.effect(
        "a recipient named by the origin displaces a squatter",
        timed(
          Effect.gen(function* () {
            const first = yield* openStore()
            yield* first.declare({ payTo: "GSQUAT", description: "Mine" })
            yield* first.probe(answerOf({ said: [{ description: "Theirs" }] }))
            expect(yield* first.listing).toMatchObject({
              state: "active",
              grade: "origin",
              description: "Theirs",
              pay_tos: ["GOWNER"]
            })
            const { declare, listing, probe, prices } = yield* openStore()
            yield* declare({ payTo: "GSQUAT", description: "Mine", amount: "1", asset: "CMINE" })
            yield* probe(answerOf({ word: { payTos: ["GOWNER"], delisted: false } }))
            expect(yield* listing).toMatchObject({ state: "quarantined", state_reason: "origin_names_another" })
            expect(yield* declare()).toMatchObject({ decision: "updated" })
            expect(yield* listing).toMatchObject({ state: "active", grade: "claimed", description: "A thing" })
            expect(yield* prices).toEqual(["5"])
            expect(yield* declare({ description: "Evil" })).toMatchObject(held)
          })
        )
      )

      it.effect(
        "a listing that an operator removed is not probed [S317]",
        timed(
          Effect.gen(function* () {
            const { declare, listing, probe, sql } = yield* openStore()
            yield* declare()
            for (const state of ["quarantined", "removed"]) {
              yield* sql`update catalog_resources set state = ${state}, state_reason = 'operator'`
              yield* probe(answerOf({ said: [{ description: "Origin" }] }))
              expect(yield* listing).toMatchObject({ state, grade: "claimed", version: 1 })
            }
          })
        )
      )

      it.effect(
        "a listing begins with its first qualifying payment, not with earlier verifications [S287]",
        timed(
          Effect.gen(function* () {
            const { declare, listing } = yield* openStore({ indexOn: "settled" })
            expect(yield* declare({ description: "Free words" }, { payer: "GEVIL" })).toMatchObject({
              decision: "held"
            })
            expect(yield* declare({ description: "More free words" })).toMatchObject({ decision: "held" })
            expect(yield* declare({}, { stage: "settled" })).toMatchObject({ decision: "updated" })
            expect(yield* listing).toMatchObject({ verification: "payment_observed", description: "A thing" })
            expect(yield* declare({ description: "Later" }, { stage: "settled" })).toMatchObject(held)
          })
        )
      )

      it.effect(
        "buyer extensions are stripped, and older listings are published without them [S194][S310]",
        timed(
          Effect.gen(function* () {
            const { declare, listing } = yield* openStore()
            yield* declare({ extensions: ["catalog", "payment-identifier"] })
            expect(yield* declare()).toMatchObject({ decision: "unchanged" })
            expect(yield* listing).toMatchObject({ version: 2, extensions: ["catalog"], grade: "claimed" })
            yield* declare()
            expect(yield* listing).toMatchObject({ version: 2 })
          })
        )
      )

      it.effect(
        "daily claims count against payer and origin, never against the owner",
        timed(
          Effect.gen(function* () {
            const { declare, sql } = yield* openStore()
            const claim = (payer: string, path: string, more = {}) =>
              declare({ resource: `${shop}/${path}` }, { payer, ...more })
            for (let payer = 0; payer < 8; payer++) {
              for (const at of [0, 1]) expect((yield* claim(`GP${payer}`, `${payer}/${at}`)).decision).toBe("listed")
              expect(yield* claim(`GP${payer}`, `${payer}/2`)).toMatchObject(used)
            }
            // Others have used up the origin's share: nothing is refused, and a probe costs the payer nothing.
            for (let at = 0; at < 4; at++)
              expect(yield* claim("GHONEST", "honest")).toMatchObject({ ...held, isHint: true, resourceId: undefined })
            expect(yield* declare({ resource: "https://other.example.com/a" }, { payer: "GHONEST" })).toMatchObject({
              decision: "listed"
            })
            expect((yield* claim("GBUYER", "paid", { stage: "settled" })).decision).toBe("listed")
            for (let at = 0; at < 16; at++)
              expect((yield* claim("GOWN", `own/${at}`, { grade: "declared" })).decision).toBe("listed")
            expect(yield* claim("GOWN", "own/16", { grade: "declared" })).toMatchObject(used)
            yield* TestClock.adjust(day)
            expect((yield* claim("GP0", "next")).decision).toBe("listed")
            const owners = yield* sql<{ n: number }>`select count(*)::int as n from catalog_quotas
              where subject like '%recipient%'`
            expect(owners).toEqual([{ n: 0 }])
          })
        )
      )

      it.effect(
        "one payment lists one resource; its further claims only request probes",
        timed(
          Effect.gen(function* () {
            const { age, declare, sql } = yield* openStore()
            const by = (authorization: string) => ({ authorization: () => Option.some(authorization) })
            const at = (path: string) => ({ resource: `${shop}/${path}` })
            expect(yield* declare(at("a"), by("one"))).toMatchObject({ decision: "listed" })
            for (const path of ["b", "c", "b"]) {
              expect(yield* declare(at(path), by("one"))).toMatchObject({
                ...held,
                isHint: true,
                resourceId: undefined
              })
              const settled = { ...by("one"), stage: "settled", grade: "declared" } as const
              expect(yield* declare(at(path), settled)).toMatchObject({ ...held, isHint: true })
            }
            expect(yield* declare(at("a"), { ...by("one"), stage: "settled" })).toMatchObject({ decision: "unchanged" })
            expect(yield* declare(at("b"), by("two"))).toMatchObject({ decision: "listed" })
            // A declaration that lists nothing does not use it up.
            expect((yield* declare(at("c"), by("three"))).decision).toBe("rejected")
            yield* TestClock.adjust(day)
            expect((yield* declare(at("c"), by("three"))).decision).toBe("listed")
            yield* TestClock.adjust(400 * day)
            yield* age
            expect(yield* sql`select authorization_key from catalog_authorizations`).toEqual([
              { authorization_key: "three" }
            ])
          })
        )
      )

      it.effect(
        "two failed probes make a resource stale until its origin answers",
        timed(
          Effect.gen(function* () {
            const { age, declare, listing, probe, now, sightings } = yield* openStore()
            const { resourceId } = yield* declare()
            const dead = answerOf({ life: "not_found" })
            yield* probe(answerOf({ said: [{}] }))
            expect(yield* probe(dead)).toBe(false)
            expect(yield* probe(answerOf({ life: "unknown" }))).toBe(false)
            expect((yield* listing).state).toBe("active")
            yield* probe(answerOf({ said: [{}] }))
            yield* probe(dead)
            expect((yield* listing).state).toBe("active")
            expect(yield* probe(dead)).toBe(true)
            expect(yield* listing).toMatchObject({
              state: "stale",
              state_reason: "not_found",
              uptime: expect.closeTo(0.4)
            })
            yield* sightings.touch(resourceId!, yield* now, undefined)
            yield* sightings.flush
            yield* declare()
            expect((yield* listing).state).toBe("stale")
            expect(yield* probe(answerOf({ said: [{}] }))).toBe(true)
            expect((yield* listing).state).toBe("active")
            // A resource without an observed payment stays stale, however healthy its origin is.
            yield* TestClock.adjust(169 * 3_600_000)
            yield* age
            yield* probe(answerOf({ said: [{}] }))
            expect(yield* listing).toMatchObject({ state: "stale", state_reason: "not_seen" })
          })
        )
      )

      it.effect(
        "settled amounts of distinct payers raise rank, dust and circular payments excluded",
        timed(
          Effect.gen(function* () {
            const { activity, age, declare, now, sightings } = yield* openStore()
            const { resourceId } = yield* declare()
            const other = yield* declare({ resource: "https://b.example.com/", payTo: "GFRIEND" })
            let count = 0
            const pay = Effect.fnUntraced(function* (
              payer: string,
              amount = "1000",
              payTo = "GOWNER",
              id = resourceId
            ) {
              const sale = { transaction: `t${count++}`, payer, payTo, amount }
              yield* sightings.touch(id!, yield* now, sale)
              yield* sightings.flush
            })
            yield* pay("GA")
            yield* pay("GA")
            yield* pay("GDUST", "99")
            yield* pay("GOWNER")
            expect(yield* activity).toEqual({ settled: 4, payers: 3, earned: 1, recent: [2, 1] })
            yield* pay("GOWNER", "1000", "GFRIEND", other.resourceId)
            yield* pay("GFRIEND")
            expect(yield* activity).toMatchObject({ earned: 1, recent: [2, 1] })
            yield* pay("GDUST", "100")
            expect(yield* activity).toEqual({ settled: 6, payers: 4, earned: 2, recent: [3, 2] })
            yield* TestClock.adjust(31 * day)
            yield* age
            expect(yield* activity).toMatchObject({ earned: 2, recent: [0, 0] })
            yield* pay("GA")
            expect(yield* activity).toMatchObject({ earned: 2, recent: [1, 1] })
          })
        )
      )

      it.effect(
        "a challenge binds one key and one account within ten minutes",
        timed(
          Effect.gen(function* () {
            const { challenges, recipients } = yield* openStore()
            const key = (label: string) => ({ owner: `key:${label}`, source: `key:${label}`, keyed: true })
            const anonymous = { owner: "anonymous", source: "203.0.113.1", keyed: false }
            const pair = Keypair.random()
            const payTo = pair.publicKey()
            expect(yield* recipients.gradeOf(key("bound"), "GBOUND")).toBe("declared")
            expect(yield* recipients.gradeOf(key("bound"), "GOTHER")).toBe("claimed")
            expect(yield* recipients.gradeOf(key("other"), "GBOUND")).toBe("claimed")
            const place = { host: "pay.example.com", network: "ledger:testnet" }
            expect(yield* challenges.make(key("a"), payTo, { ...place, host: "a b" })).toBe(undefined)
            const { challenge } = (yield* challenges.make(key("a"), payTo, place))!
            const sign = (text: string, by = pair) =>
              Buffer.from(by.sign(createHash("sha256").update(`Stellar Signed Message:\n${text}`).digest())).toString(
                "base64"
              )
            const answered = (owner: string, account: string, text: string, signature = sign(text), at = place) =>
              challenges.isAnswered(key(owner), account, at, text, signature)
            for (const named of [place.host, place.network, payTo, "key:a"]) expect(challenge).toContain(named)
            for (const other of [{ host: "evil.example.com" }, { network: "ledger:pubnet" }])
              expect(yield* answered("a", payTo, challenge, sign(challenge), { ...place, ...other })).toBe(false)
            expect(yield* answered("a", payTo, challenge)).toBe(true)
            expect(yield* answered("b", payTo, challenge)).toBe(false)
            const stranger = Keypair.random()
            expect(yield* answered("a", payTo, challenge, sign(challenge, stranger))).toBe(false)
            expect(yield* answered("a", stranger.publicKey(), challenge, sign(challenge, stranger))).toBe(false)
            const forged = challenge.replace(/ [^ ]+$/, ` ${"A".repeat(43)}`)
            expect(yield* answered("a", payTo, forged)).toBe(false)
            expect(yield* answered("a", payTo, `${"x".repeat(1_024)} ${challenge}`)).toBe(false)
            yield* TestClock.adjust(600_000)
            expect(yield* answered("a", payTo, challenge)).toBe(false)
            expect(yield* recipients.gradeOf(key("a"), payTo)).toBe("claimed")
            expect(yield* recipients.bind(key("a"), payTo)).toBe(true)
            expect(yield* recipients.gradeOf(key("a"), payTo)).toBe("declared")
            expect(yield* recipients.gradeOf(key("b"), payTo)).toBe("claimed")
            expect(yield* recipients.gradeOf({ ...anonymous, owner: "key:a" }, payTo)).toBe("claimed")
          })
        )
      )

      it.effect(
        "probe requests are limited per payer, per origin and in total",
        timed(
          Effect.gen(function* () {
            const { hints } = yield* openStore()
            const ask = (payer: string, path: string) =>
              hints.ask({ type: "http", resource: `${shop}/${path}`, toolName: "", origin: shop }, "GET", payer)
            for (let at = 0; at < 5; at++) yield* ask("GFLOOD", `flood/${at}`)
            yield* ask("GHONEST", "honest")
            yield* ask("GOTHER", "honest")
            expect((yield* hints.take).map(({ payer }) => payer)).toEqual(["GFLOOD", "GFLOOD", "GHONEST"])
            for (let payer = 0; payer < 40; payer++) yield* ask(`G${payer}`, `many/${payer}`)
            expect(yield* hints.take).toHaveLength(32)
            expect(yield* hints.take).toHaveLength(0)
          })
        )
      )
    })
  },
  ["kernel", "catalog"]
)
