// Revocation across replicas: two facilitators over one PostgreSQL, each with its own key files, as on two hosts.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Context, Effect, FileSystem, Layer } from "effect"
import { describe } from "vitest"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { runOperatorCommand } from "../../../runtime/operators.ts"
import { databaseKinds, sourceLayer } from "../../support/databases.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"

const shop = "shop:shop-secret-0123456789"
const desk = "desk:desk-secret-0123456789"
const me = "me:operator-secret-0123456789"
const leaked = "leaked:leaked-operator-0123456789"
const bearer = (key: string) => ({ authorization: `Bearer ${key.split(":")[1]}` })

const run = (at: Facilitator, ...words: ReadonlyArray<string>) =>
  runOperatorCommand(at.services, { words: [...words, "--json"], folder: "." }, "0")
const reread = (at: Facilitator, ...more: ReadonlyArray<string>) =>
  run(at, "keys", "reread", "--reason", "a key leaked", ...more)
const replicasOf = ({ out }: { readonly out: string }) =>
  (JSON.parse(out).replicas as ReadonlyArray<{ replica: string; changes: string; fault?: string }>).map(
    ({ changes, fault, replica }) => [replica.split("/")[0], changes, fault]
  )

const statusOf = (at: Facilitator, key: string) =>
  Effect.map(at.ask("/supported", { headers: bearer(key) }), ({ status }) => (status === 401 ? "refused" : "known"))
const isOperator = (at: Facilitator, cookie: string) =>
  Effect.map(at.ask("/dashboard/session", { headers: { cookie } }), ({ json }) => json.role === "operator")
const signIn = (at: Facilitator, key: string) =>
  Effect.map(
    at.ask("/dashboard/session", {
      method: "POST",
      headers: { "content-type": "application/json", "x-tollkeeper-page": "1" },
      body: JSON.stringify({ key: key.split(":")[1] })
    }),
    ({ headers }) => headers.get("set-cookie")!.split(";", 1)[0]!
  )

/** Two replicas, each with a folder of key files, and a function that starts another. */
const twoReplicas = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const opened = yield* Context.get(yield* Layer.build(sourceLayer("postgres")), DatabaseSource).open
  const database = Layer.succeed(DatabaseSource, { open: Effect.succeed(opened) })
  const secret = Keypair.random().secret()
  const replica = Effect.fnUntraced(function* (name: string, ledgerUrl?: string) {
    const folder = yield* files.makeTempDirectoryScoped()
    const write = (callers: ReadonlyArray<string>, operators: ReadonlyArray<string> = [me, leaked]) =>
      Effect.andThen(
        files.writeFileString(`${folder}/callers`, callers.join("\n")),
        files.writeFileString(`${folder}/operators`, operators.join("\n"))
      )
    const start = Effect.suspend(() =>
      startFacilitator({
        database,
        ...(ledgerUrl === undefined ? {} : { ledgerUrl }),
        environment: {
          SPONSOR_SECRET: secret,
          FACILITATOR_API_KEYS_FILE: `${folder}/callers`,
          OPERATOR_API_KEYS_FILE: `${folder}/operators`
        },
        set: [
          `plugins=[${ledgerUrl === undefined ? "ledger-local," : ""}x402-exact,webhooks,dashboard]`,
          `server.instance=${name}`
        ]
      })
    )
    yield* write([shop, desk])
    return { at: yield* start, write, start }
  })
  const a = yield* replica("a")
  const b = yield* replica("b", a.at.ledgerUrl)
  return [a, b] as const
})

describe.skipIf(!databaseKinds.includes("postgres"))("keys over replicas", () => {
  it.live(
    "a key removed at one replica is refused at every replica",
    () =>
      Effect.gen(function* () {
        const [a, b] = yield* twoReplicas
        const cookie = yield* signIn(b.at, leaked)
        expect([yield* isOperator(b.at, cookie), yield* statusOf(b.at, shop)]).toEqual([true, "known"])
        const stream = yield* Effect.promise(() =>
          fetch(`${b.at.url}/settlements/events`, { headers: bearer(shop) }).then(({ body }) => body!.getReader())
        )

        // The other host's files are renewed later.
        yield* a.write(["added:added-secret-0123456789", desk], [me])
        const asked = yield* reread(a.at)
        expect([yield* isOperator(b.at, cookie), yield* statusOf(b.at, shop)]).toEqual([false, "refused"])
        expect([yield* isOperator(a.at, cookie), yield* statusOf(a.at, shop)]).toEqual([false, "refused"])
        expect([yield* statusOf(b.at, desk), yield* statusOf(b.at, me)]).toEqual(["known", "refused"])
        expect(asked.status).toBe(1)
        expect(replicasOf(asked)).toEqual([
          ["a", "removed shop, removed operator leaked, added added", undefined],
          [
            "b",
            "unchanged",
            "its sources lack added; its sources still list shop, operator leaked, revoked and refused"
          ]
        ])
        expect(asked.err).toMatch(/b\/[0-9a-f]{8} is behind: its sources lack added/)
        yield* Effect.promise(async () => {
          while (!(await stream.read()).done);
        })

        // Neither its own reread nor a restart with the old file brings the key back.
        expect((yield* reread(b.at)).status).toBe(1)
        yield* b.at.stop
        const restarted = yield* b.start
        expect(yield* statusOf(restarted, shop)).toBe("refused")
        expect((yield* restarted.ask("/health/ready")).json.keys).toMatchObject({ state: "degraded" })

        yield* b.write(["added:added-secret-0123456789", desk], [me])
        const again = yield* reread(a.at)
        expect([again.status, replicasOf(again)]).toEqual([
          0,
          [
            ["a", "unchanged", undefined],
            ["b", "removed shop, removed operator leaked, added added", undefined]
          ]
        ])
        expect(yield* statusOf(restarted, "added:added-secret-0123456789")).toBe("known")
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
    240_000
  )

  it.live(
    "a revoked key is reinstated when a reread adds it, or by flag",
    () =>
      Effect.gen(function* () {
        const [a, b] = yield* twoReplicas
        yield* a.write([desk])
        yield* reread(a.at)
        expect(yield* statusOf(b.at, shop)).toBe("refused")
        yield* a.write([desk, shop])
        expect((yield* reread(a.at)).status).toBe(0)
        expect([yield* statusOf(a.at, shop), yield* statusOf(b.at, shop)]).toEqual(["known", "known"])

        yield* a.write([desk])
        yield* reread(a.at)
        // B's file listed it the whole time: a reread does not distinguish it from an old file.
        const listed = yield* reread(b.at)
        expect([listed.status, yield* statusOf(b.at, shop)]).toEqual([1, "refused"])
        yield* a.write([desk, shop])
        expect((yield* reread(b.at, "--reinstate")).status).toBe(0)
        expect(yield* statusOf(b.at, shop)).toBe("known")
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
    240_000
  )

  it.live(
    "a reread names replicas that cannot read their files, or died",
    () =>
      Effect.gen(function* () {
        const [a, b] = yield* twoReplicas
        yield* a.write([shop])
        yield* b.write(["short"])
        const asked = yield* reread(a.at)
        expect(asked.status).toBe(1)
        expect(asked.err).toContain(
          "is behind: kept its former keys: FACILITATOR_API_KEYS: entry 1 is shorter than 16 characters"
        )
        expect([yield* statusOf(b.at, desk), yield* statusOf(b.at, shop)]).toEqual(["refused", "known"])
        yield* b.write([shop])
        expect((yield* reread(b.at)).status).toBe(0)
        // A crashed replica is named until it no longer counts; a stopped one is not waited for.
        yield* b.at.stop
        expect(replicasOf(yield* reread(a.at))).toEqual([["a", "unchanged", undefined]])
        yield* a.at.sql`insert into kernel_key_replicas (replica, revision, changes, in_force, refused)
          values ('dead/1', 0, 'unchanged', '[]', '[]')`
        expect((yield* reread(a.at)).err).toContain("dead/1 is behind: has not reread its sources")
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
    240_000
  )
})
