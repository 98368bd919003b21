// Another catalog's pages are read each hour, each with its own ETag: an unchanged page does not end the reading, and
// the origins of a later changed page are probed.
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { Config } from "../../../plugins/catalog/Config.ts"
import { startForeignCatalogs } from "../../../plugins/catalog/ownership/foreignCatalogs.ts"
import { OriginDocuments } from "../../../plugins/catalog/ownership/OriginDocuments.ts"
import { OriginProbes } from "../../../plugins/catalog/ownership/OriginProbes.ts"

const catalog = "https://catalog.example/discovery/resources"
const full = Array.from({ length: 100 }, (_, at) => ({ resource: `https://first.example/${at}` }))

it.effect("an unchanged page does not hide a changed one behind it", () => {
  let behind = [{ resource: "https://second.example/a" }]
  const asked: Array<string> = []
  const probed: Array<string> = []
  /** The catalog's HTTP answers. */
  const send = (url: URL, _method: string, more?: { readonly headers?: Readonly<Record<string, string>> }) =>
    Effect.sync(() => {
      const items = url.searchParams.get("offset") === "0" ? full : behind
      const etag = `"${items.length}"`
      const isKnown = more?.headers?.["if-none-match"] === etag
      asked.push(`${url.searchParams.get("offset")} ${isKnown ? 304 : 200}`)
      const body = new TextEncoder().encode(isKnown ? "" : JSON.stringify({ items }))
      return { status: isKnown ? 304 : 200, headers: { etag }, body, url }
    })
  const probe = (origin: string) => Effect.sync(() => ({ _tag: "Probed", count: probed.push(origin) }))
  const services = Layer.mergeAll(
    Supervisor.layer,
    Layer.succeed(Config, { foreignCatalogs: [catalog] } as never),
    Layer.succeed(OriginDocuments, { send } as never),
    Layer.succeed(OriginProbes, { probe } as never)
  )
  return Effect.gen(function* () {
    yield* startForeignCatalogs
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(probed, ["https://first.example", "https://second.example"])
    behind = [...behind, { resource: "https://third.example/a" }]
    yield* TestClock.adjust("1 hour")
    assert.deepStrictEqual(asked, ["0 200", "100 200", "0 304", "100 200"])
    assert.deepStrictEqual(probed.slice(2), ["https://third.example"])
  }).pipe(Effect.provide(services), Effect.scoped)
})
