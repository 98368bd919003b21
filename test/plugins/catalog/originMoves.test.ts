// Signed moves of listings from one origin to another: the seller keeps its evidence, and no other account gets it.
import { expect, layer } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect, Layer } from "effect"
import { createHash } from "node:crypto"
import { Network } from "../../../kernel/config/Network.ts"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { Config } from "../../../plugins/catalog/Config.ts"
import { OriginDocuments } from "../../../plugins/catalog/ownership/OriginDocuments.ts"
import { moveText, OriginMoves } from "../../../plugins/catalog/ownership/OriginMoves.ts"
import { Changes } from "../../../plugins/catalog/store/Changes.ts"
import { Versions } from "../../../plugins/catalog/store/Versions.ts"
import { describeDatabases } from "../../support/databases.ts"
import { timed } from "../../support/timed.ts"
import { answerOf, openStore, start, values } from "./store.ts"

const [seller, stranger] = [Keypair.random(), Keypair.random()]
const [a, b, c] = ["https://old.example.com", "https://new.example.com", "https://other.example.com"] as const
const day = 86_400_000

interface Entry {
  readonly from?: string
  readonly to?: string
  readonly by?: Keypair
  readonly payTo?: string
  readonly at?: number
}

/** An entry of `movedFrom`, signed by an account. */
const signed = ({ at = start, by = seller, from = a, payTo = seller.publicKey(), to = b }: Entry = {}) => {
  const signedAt = new Date(at).toISOString()
  const text = moveText({ from, to, payTo, signedAt }, "ledger:testnet")
  const digest = createHash("sha256").update(`Stellar Signed Message:\n${text}`).digest()
  return { origin: from, payTo, signedAt, signature: Buffer.from(by.sign(digest)).toString("base64") }
}

const openMoves = Effect.gen(function* () {
  const store = yield* openStore({ newResourcesPerDayMax: 1_000 })
  const { declare, now, probe, settle, sql } = store
  const documents = new Map<string, unknown>()
  const gone = new Set<string>()
  const origins = Layer.succeed(OriginDocuments, {
    wellKnown: (origin: string) =>
      Effect.sync(() => ({
        document: new TextEncoder().encode(JSON.stringify(documents.get(origin) ?? null)),
        detail: "well-known",
        isLocal: false,
        isGone: gone.has(origin)
      }))
  } as unknown as OriginDocuments["Service"])
  const { apply } = yield* Effect.provide(
    Effect.service(OriginMoves),
    OriginMoves.layer.pipe(
      Layer.provide(Layer.mergeAll(Versions.layer, origins, Changes.layer)),
      Layer.provide(Network.layerTest({ id: "ledger:testnet", assets: new Map() } as never)),
      Layer.provide(Layer.succeed(Config, values))
    )
  )
  const said = { resource: `${a}/report`, payTo: seller.publicKey(), amount: "1000000" }
  /** Carries out the moves of an origin's document. */
  const move = (to: string, ...moves: ReadonlyArray<unknown>) =>
    Effect.flatMap(now, (now) => apply({ movedFrom: moves }, to, now))
  const listings = sql<{ resource: string; state: string; weight: boolean; payTos: ReadonlyArray<string> }>`
    select resource, state, standing_at is not null as weight, pay_tos as "payTos" from catalog_resources order by id`
  return { ...store, declare, documents, gone, listings, move, probe, said, settle, sql }
})

/** The seller's listing at the old origin, which names the new one; paid for, with the origin's own words. */
const openMoved = Effect.gen(function* () {
  const world = yield* openMoves
  yield* world.settle(world.said, { payer: "GBUYER", dollars: 12 })
  yield* world.probe(answerOf({ said: [world.said] }))
  world.documents.set(a, { movedTo: b })
  return world
})

const atOld = [{ resource: `${a}/report`, state: "active", weight: true, payTos: [seller.publicKey()] }]
const atNew = [{ ...atOld[0]!, resource: `${b}/report` }]

describeDatabases(
  "a signed move",
  (database) => {
    const services = Facts.layer.pipe(Layer.provideMerge(database), Layer.provideMerge(Supervisor.layer))
    layer(services, { timeout: "120 seconds", excludeTestServices: true })((it) => {
      it.effect(
        "keeps evidence, counts and versions under the new URL",
        timed(
          Effect.gen(function* () {
            const { activity, listings, move, sql } = yield* openMoved
            expect(yield* listings).toEqual(atOld)
            const evidence = sql`select id, standing_at, established_at, first_seen_at from catalog_resources`
            const [before, counts] = [yield* evidence, yield* activity]
            expect(yield* move(b, signed())).toEqual({ moved: 1, detail: `, move from ${a}: 1 moved` })
            expect(yield* listings).toEqual(atNew)
            expect([yield* evidence, yield* activity]).toEqual([before, counts])
            const row = yield* sql`select grade, ownership, origin, document::jsonb->>'resource' as resource,
            version from catalog_resources`
            const shown = { grade: "declared", ownership: "provisional", origin: b, resource: `${b}/report` }
            expect(row).toMatchObject([shown])
            const versions = yield* sql`select document::jsonb->>'resource' as resource from catalog_versions
            where resource_id = 1 order by version`
            expect([versions[0], versions.at(-1)]).toEqual([{ resource: `${a}/report` }, { resource: `${b}/report` }])
            const payers = yield* sql`select claim = version_hash as current from catalog_claim_payers
              join catalog_resources r on r.id = resource_id`
            expect(payers).toEqual([{ current: true }])
            const due = yield* sql`select 1 from catalog_probes where due_at <= ${new Date(start + 60_000)}`
            expect(due).toHaveLength(1)
            // The same move again has nothing left to move.
            expect((yield* move(b, signed())).moved).toBe(0)
          })
        )
      )

      const g = seller.publicKey()
      it.effect.each<readonly [string, ReadonlyArray<Entry | object>, unknown, string]>([
        ["a stranger signs", [{ by: stranger }], undefined, "not signed by payTo"],
        ["a stranger names its own account", [{ by: stranger, payTo: stranger.publicKey() }], undefined, "no listing"],
        ["the signature is for another origin", [{ ...signed({ to: c }) }], undefined, "not signed by payTo"],
        ["the signature is no signature", [{ ...signed(), signature: "AAAA" }], undefined, "not signed by payTo"],
        ["payTo is no account", [{ ...signed(), payTo: "G" }], undefined, "not signed by payTo"],
        ["the time does not exist", [{ ...signed(), signedAt: "2031-99-01T00:00:00Z" }], undefined, "signedAt"],
        ["the signature is a week old", [{ at: start - 8 * day }], undefined, "signedAt"],
        ["the signature is of tomorrow", [{ at: start + day }], undefined, "signedAt"],
        ["the old origin names nothing", [{}], { payTo: g }, "does not name this one"],
        ["the old origin names another", [{}], { movedTo: c }, "does not name this one"],
        ["the new origin names nothing", [], undefined, ""]
      ])("moves nothing if %s", ([_, entries, document, reason]) =>
        timed(
          Effect.gen(function* () {
            const { documents, listings, move } = yield* openMoved
            if (document !== undefined) documents.set(a, document)
            const moves = entries.map((entry) => ("signature" in entry ? entry : signed(entry as Entry)))
            const { detail, moved } = yield* move(b, ...moves)
            expect([moved, detail]).toEqual([0, expect.stringContaining(reason)])
            expect(yield* listings).toEqual(atOld)
          })
        )()
      )

      it.effect(
        "needs no word of an origin that is gone, and not before",
        timed(
          Effect.gen(function* () {
            const { documents, gone, listings, move, sql } = yield* openMoved
            documents.delete(a)
            gone.add(a)
            // Its listing is not yet known to be dead.
            expect((yield* move(b, signed())).detail).toContain("no listing to move")
            yield* sql`update catalog_resources set state = 'stale', state_reason = 'origin_gone'`
            gone.delete(a)
            expect((yield* move(b, signed())).detail).toContain("does not name this one")
            gone.add(a)
            expect((yield* move(b, signed())).moved).toBe(1)
            expect(yield* listings).toEqual(atNew)
          })
        )
      )

      it.effect(
        "goes back by a newer signature, and a replay of the first is void",
        timed(
          Effect.gen(function* () {
            const { documents, listings, move } = yield* openMoved
            const [first, second] = [signed(), signed({ from: b, to: a, at: start + 1_000 })]
            documents.set(b, { movedTo: a })
            expect((yield* move(b, first)).moved).toBe(1)
            expect((yield* move(a, second)).moved).toBe(1)
            expect(yield* listings).toEqual(atOld)
            for (const replayed of [first, signed({ at: start + 1_000 })])
              expect(yield* move(b, replayed)).toMatchObject({
                moved: 0,
                detail: expect.stringContaining("no listing to move")
              })
            // Nor does the old signature of one origin move it on from the other.
            expect((yield* move(c, signed({ to: c }))).moved).toBe(0)
            expect(yield* listings).toEqual(atOld)
          })
        )
      )

      it.effect.each<readonly [string, string]>([
        ["old", a],
        ["new", b]
      ])("moves nothing while an operator withdraws a listing of the %s origin", ([_, origin]) =>
        timed(
          Effect.gen(function* () {
            const { declare, listings, move, sql } = yield* openMoved
            yield* declare({ resource: `${origin}/bad`, payTo: seller.publicKey() })
            yield* sql`update catalog_resources set state = 'quarantined', state_reason = 'operator'
            where resource like '%/bad'`
            expect((yield* move(b, signed())).detail).toContain("withdrawn")
            expect((yield* listings).map(({ resource }) => resource)).toEqual([`${a}/report`, `${origin}/bad`])
          })
        )()
      )

      it.effect(
        "changes places with the seller's own listing, which loses its evidence",
        timed(
          Effect.gen(function* () {
            const { listings, move, said, settle } = yield* openMoved
            yield* settle({ ...said, resource: `${b}/report` }, { payer: "GOTHER", dollars: 12 })
            expect((yield* move(b, signed())).moved).toBe(1)
            expect(yield* listings).toEqual([...atNew, { ...atOld[0]!, state: "stale", weight: false }])
          })
        )
      )

      it.effect(
        "displaces a claim, never another seller's listing with evidence",
        timed(
          Effect.gen(function* () {
            const { declare, listings, move, settle, sql } = yield* openMoved
            const other = { resource: `${b}/report`, payTo: stranger.publicKey(), amount: "1000000" }
            yield* settle(other, { payer: "GOTHER", dollars: 12 })
            expect((yield* move(b, signed())).detail).toContain("no listing to move")
            expect((yield* listings).map(({ weight }) => weight)).toEqual([true, true])
            // A removed listing is not replaced.
            const place = sql`update catalog_resources set standing_at = null, established_at = null where id = 2`
            yield* Effect.andThen(place, sql`update catalog_resources set state = 'removed' where id = 2`)
            expect((yield* move(b, signed())).moved).toBe(0)
            yield* sql`update catalog_resources set state = 'active' where id = 2`
            expect((yield* move(b, signed())).moved).toBe(1)
            expect(yield* listings).toEqual([
              ...atNew,
              { resource: `${a}/report`, state: "stale", weight: false, payTos: [stranger.publicKey()] }
            ])
            // Listings of several recipients, and claims without evidence, stay.
            yield* declare({ resource: `${a}/claim`, payTo: seller.publicKey() })
            yield* settle(
              { ...other, resource: `${a}/both`, payTo: seller.publicKey() },
              { payer: "GBUYER", dollars: 12 }
            )
            const columns = sql.literal("resource_id, operation, scheme, network, asset, amount, option, first_seen_at")
            yield* sql`insert into catalog_options (pay_to, ${columns})
              select ${stranger.publicKey()}, ${columns} from catalog_options
              where resource_id = (select max(id) from catalog_resources)`
            expect((yield* move(b, signed({ at: start + 1 }))).moved).toBe(0)
          })
        )
      )
    })
  },
  ["kernel", "catalog"]
)
