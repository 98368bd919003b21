// Which secrets a reread reads again, and the report on this replica. Over replicas: `keyRevisions.daily.test.ts`.
import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SettingsRefused } from "../../../kernel/config/Settings.ts"
import { Server } from "../../../kernel/config/Server.ts"
import { KeyRevisions } from "../../../kernel/accounts/KeyRevisions.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { Health, type HealthReport } from "../../../kernel/health/Health.ts"
import { type KeyChanges, Keys, type NamedKey } from "../../../kernel/http/Keys.ts"
import { Host } from "../../../kernel/platform/Host.ts"
import { databaseLayer, type DatabaseKind, describeDatabases } from "../../support/databases.ts"
import { layerTest } from "../../support/layerTest.ts"

const keyOf = (principal: string, digest: string, isRevoked = false) => ({
  role: "caller" as const,
  principal,
  digest: digest.repeat(32),
  isRevoked
})

/** A replica; a test sets what its sources list, and the changes that a reread finds. */
const world = (kind: DatabaseKind) => {
  const state = {
    listed: [keyOf("shop", "a")] as ReadonlyArray<NamedKey & { readonly isRevoked: boolean }>,
    found: Effect.succeed({ added: [], removed: [] }) as Effect.Effect<KeyChanges, SettingsRefused>,
    revoked: [] as ReadonlyArray<string>,
    rereads: [] as Array<string>,
    health: Effect.succeed({ state: "ready" }) as Effect.Effect<HealthReport>
  }
  const layer = KeyRevisions.layer.pipe(
    Layer.provide([
      Supervisor.layer,
      layerTest(Server, { instance: "one" }),
      Layer.succeed(Host, { name: "this-machine", stateFolder: "" }),
      layerTest(Health, { register: (_, report) => Effect.sync(() => void (state.health = report)) }),
      layerTest(Keys, {
        named: () => state.listed,
        setRevoked: (keys) => void (state.revoked = keys.map(({ digest }) => digest.slice(0, 1))),
        reread: Effect.suspend(() => {
          state.rereads.push("keys")
          return state.found
        })
      })
    ]),
    Layer.provideMerge(databaseLayer(kind))
  )
  const register = (name: string) =>
    Effect.flatMap(KeyRevisions, (revisions) =>
      revisions.register({
        name,
        reread: ({ name: only }) =>
          Effect.sync(() => {
            state.rereads.push(only === "" ? name : `${name} ${only}`)
            return [`read ${name}`]
          }),
        marks: () => [`${name} mark`]
      })
    )
  return { layer, register, state }
}

describeDatabases("a reread of keys", (_, kind) => {
  it.effect("a reread reads every part, or the named one alone", () => {
    const { layer, register, state } = world(kind)
    return Effect.gen(function* () {
      const { reread } = yield* KeyRevisions
      yield* register("webhooks")
      yield* register("receipts")
      const changesOf = Effect.fnUntraced(function* (options?: Parameters<typeof reread>[0]) {
        state.rereads = []
        const [own] = yield* reread(options)
        return [state.rereads, own!.changes, own!.fault]
      })
      expect(yield* changesOf()).toEqual([["keys", "webhooks", "receipts"], "read webhooks, read receipts", undefined])
      expect(yield* changesOf({ part: "receipts" })).toEqual([["receipts"], "read receipts", undefined])
      expect(yield* changesOf({ part: "webhooks", name: "one" })).toEqual([
        ["webhooks one"],
        "read webhooks",
        undefined
      ])
      expect(yield* changesOf({ part: "another" })).toEqual([[], "unchanged", undefined])
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  it.effect("a removed key is revoked, and reinstated when it returns", () => {
    const { layer, state } = world(kind)
    return Effect.gen(function* () {
      const { reread } = yield* KeyRevisions
      const [shop, desk] = [keyOf("shop", "a"), keyOf("desk", "b")]
      state.found = Effect.succeed({ added: [keyOf("shop", "c")], removed: [shop, desk] })
      expect((yield* reread())[0]).toMatchObject({
        replica: expect.stringMatching(/^one\/[0-9a-f]{8}$/),
        changes: "renewed shop, removed desk"
      })
      expect(state.revoked.toSorted()).toEqual(["a", "b"])
      state.found = Effect.succeed({ added: [desk], removed: [] })
      expect((yield* reread())[0]!.changes).toBe("added desk")
      expect(state.revoked).toEqual(["a"])
      // Listed the whole time: only the flag reinstates it.
      state.found = Effect.succeed({ added: [], removed: [] })
      state.listed = [{ ...shop, isRevoked: true }]
      yield* reread()
      expect(state.revoked).toEqual(["a"])
      expect(yield* state.health).toEqual({ state: "degraded", detail: "1 listed keys are revoked, and refused" })
      yield* reread({ reinstates: true })
      expect(state.revoked).toEqual([])
    }).pipe(Effect.provide(layer))
  })

  it.effect("sources that cannot be read change nothing, and health names them", () => {
    const { layer, state } = world(kind)
    return Effect.gen(function* () {
      const { reread } = yield* KeyRevisions
      expect(yield* state.health).toEqual({ state: "ready" })
      state.found = Effect.fail(new SettingsRefused({ path: "KEYS", message: "entry 1 is short" }))
      expect(yield* Effect.flip(reread())).toMatchObject({
        path: "KEYS",
        message: "entry 1 is short; nothing changed: the previous keys stay in force"
      })
      expect(yield* state.health).toEqual({ state: "degraded", detail: "KEYS: entry 1 is short" })
    }).pipe(Effect.provide(layer))
  })
})
