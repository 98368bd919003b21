// How a replica learns of sessions that ended elsewhere: by a notification within a second, or by its poll.
import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { EndedSessions } from "../../../kernel/accounts/EndedSessions.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { Database } from "../../../kernel/database/Database.ts"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { Keys } from "../../../kernel/http/Keys.ts"
import { Sessions } from "../../../kernel/http/Sessions.ts"
import { layerTest } from "../../support/layerTest.ts"

/** A replica whose keys are of these roles. */
const world = (keyed: boolean, operatorKeyed: boolean, kind: "server" | "embedded" = "server") => {
  const seen = { reads: 0, names: [] as Array<string>, published: Effect.void as Effect.Effect<void> }
  const sql = () =>
    Effect.sync(() => {
      seen.reads += 1
      return [{ session: "caller.shop.x", until: new Date(9_000) }]
    })
  const layer = EndedSessions.layer.pipe(
    Layer.provide([
      Supervisor.layer,
      Layer.succeed(SqlClient.SqlClient, sql as never),
      layerTest(Database, { kind }),
      layerTest(Keys, { keyed: () => keyed, operatorKeyed: () => operatorKeyed }),
      layerTest(Facts, {
        onPublished: (received) => Effect.sync(() => void (seen.published = received))
      }),
      layerTest(Sessions, {
        setEnded: (ended) => void seen.names.push(...ended.map(({ name, untilSeconds }) => `${name} ${untilSeconds}`))
      })
    ])
  )
  /** Reads within this time. */
  const readsIn = Effect.fnUntraced(function* (time: "999 millis" | "1 millis" | "10 seconds") {
    const before = seen.reads
    yield* TestClock.adjust(time)
    return seen.reads - before
  })
  return { layer, readsIn, seen }
}

it.effect.each([
  ["caller", true, false],
  ["operator", false, true]
] as const)("with %s keys, publications share one read a second later", ([, keyed, operatorKeyed]) => {
  const { layer, readsIn, seen } = world(keyed, operatorKeyed)
  return Effect.gen(function* () {
    yield* EndedSessions
    yield* readsIn("1 millis")
    expect(seen.names).toContain("caller.shop.x 9")
    yield* seen.published
    yield* readsIn("1 millis")
    yield* seen.published
    expect(yield* readsIn("999 millis")).toBe(1)
    expect(yield* readsIn("10 seconds")).toBe(2)
  }).pipe(Effect.provide(layer))
})

it.effect.each([
  ["without keys", "server", false],
  ["on an embedded database", "embedded", true]
] as const)("%s, the rows are read at the start alone", ([, kind, keyed]) => {
  const { layer, readsIn, seen } = world(keyed, false, kind)
  return Effect.gen(function* () {
    yield* EndedSessions
    expect(seen.reads).toBe(1)
    yield* seen.published
    expect(yield* readsIn("10 seconds")).toBe(0)
  }).pipe(Effect.provide(layer))
})
