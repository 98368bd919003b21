import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Effect, Option, Schema } from "effect"
import { describe } from "vitest"
import { Settings } from "../../../kernel/config/Settings.ts"
import { Config } from "../../../plugins/catalog/Config.ts"
import { readResourceUrl } from "../../../plugins/catalog/declaration/resourceUrl.ts"
import { declaredSettings } from "../../../runtime/App.ts"
import { loadProfile } from "../../../runtime/profile.ts"

/** The catalog's settings under a shipped profile. */
const configOf = (name: string, set: ReadonlyArray<string> = []) =>
  Effect.gen(function* () {
    const profile = yield* loadProfile(name, set, {})
    return yield* Config.pipe(
      Effect.provide(Config.layer),
      Effect.provide(Settings.layer(profile, () => declaredSettings(profile)))
    )
  }).pipe(Effect.provide(NodeServices.layer))

describe("the catalog's settings", () => {
  it.effect(
    "hosted and self-hosted profiles list public HTTPS origins after verified payments [S19][S24][S25][S287]",
    () =>
      Effect.gen(function* () {
        for (const name of ["hosted", "self-hosted"]) {
          const config = yield* configOf(name)
          expect(config).toMatchObject({
            indexOn: "verified",
            requireHttpsOrigins: true,
            allowLocalOrigins: false,
            includeUnverified: false,
            includeStale: false
          })
          expect(readResourceUrl("http", "https://shop.example.com/x", undefined, config)).toEqual({
            resource: "https://shop.example.com/x",
            origin: "https://shop.example.com"
          })
          expect(readResourceUrl("http", "http://shop.example.com/x", undefined, config)).toMatchObject({
            reason: "insecure_origin"
          })
          expect(readResourceUrl("http", "https://192.168.0.1/x", undefined, config)).toMatchObject({
            reason: "local_origin"
          })
          expect(readResourceUrl("mcp", "https://localhost/mcp", undefined, config)).toMatchObject({
            reason: "local_origin"
          })
          expect(readResourceUrl("mcp", "mcp://calculator/add", undefined, config)).toEqual({
            resource: "mcp://calculator/add",
            origin: undefined
          })
        }
      })
  )

  it.effect("the local profile lists local origins, plain HTTP included [S26]", () =>
    Effect.gen(function* () {
      const config = yield* configOf("local")
      expect(readResourceUrl("http", "http://127.0.0.1:3000/x", undefined, config)).toMatchObject({
        resource: "http://127.0.0.1:3000/x"
      })
    })
  )

  it.effect("symbolic names map only to endpoints that can be connected to [S42][S295]", () =>
    Effect.gen(function* () {
      const config = yield* configOf("hosted", [
        `network_security.resolved_mcp_endpoints={"mcp://calculator/add": "https://calc.example.com/mcp"}`
      ])
      expect(config.resolvedMcpEndpoints).toEqual({ "mcp://calculator/add": "https://calc.example.com/mcp" })
      for (const wrong of [
        `{"calculator": "https://calc.example.com"}`,
        `{"mcp://calculator": "not a url"}`,
        `{"mcp://calculator": "file:///x"}`
      ]) {
        const refused = yield* Effect.flip(configOf("hosted", [`network_security.resolved_mcp_endpoints=${wrong}`]))
        expect(refused).toMatchObject({ path: "network_security.resolved_mcp_endpoints" })
      }
    })
  )

  it("catalog settings follow the contract's names and are documented [S286][S287][S288][S289][S290][S291][S292][S293][S294][S295]", () => {
    const documented = (section: string) => {
      const { schema } = Schema.toJsonSchemaDocument(
        declaredSettings({ tree: {}, secret: () => Option.none() }).sections.get(section)!.schema as never
      )
      return Object.entries((schema as { properties: Record<string, { description?: string }> }).properties)
        .filter(([, { description }]) => description !== undefined)
        .map(([name]) => name)
    }
    expect(documented("indexing")).toEqual(
      expect.arrayContaining([
        "auto_catalog",
        "index_on",
        "require_valid_schema",
        "stale_after_hours",
        "max_metadata_bytes",
        "max_schema_bytes",
        "max_example_bytes"
      ])
    )
    expect(documented("discovery")).toEqual(expect.arrayContaining(["include_stale", "include_unverified"]))
    expect(documented("catalog_security")).toEqual(
      expect.arrayContaining(["require_https_origins", "allow_local_origins"])
    )
    expect(documented("network_security")).toContain("resolved_mcp_endpoints")
  })
})
