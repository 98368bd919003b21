// Settings of a network that a plugin of the program contributes: they are read and refused like the kernel's own,
// whether the plugin is enabled or not.
import { expect, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Network, networksSection, pubnetIssues } from "../../../kernel/config/Network.ts"
import { networkKeys } from "../../../kernel/config/NetworkKeys.ts"
import { integer, optionalText } from "../../../kernel/config/Setting.ts"
import { decodeSection, Settings } from "../../../kernel/config/Settings.ts"

const keys = networkKeys(
  "x402-later",
  {
    later_contract: optionalText({ doc: "Where it is." }),
    later_limit: integer({ default: 7, min: 1, max: 9 }, "How much of it.")
  },
  ({ later_contract }) => (later_contract === undefined ? undefined : "not reviewed yet")
)

const network = (entry: object, id = "ledger:testnet") =>
  Effect.flatMap(Network, Effect.succeed).pipe(
    Effect.provide(Network.layer),
    Effect.provide(
      Settings.layerTest({ networks: { [id]: { enabled: true, rpc_urls: ["http://rpc"], ...entry } } }, undefined, [
        keys
      ])
    )
  )

it.effect("reads contributed network keys beside the kernel's, with defaults [S302]", () =>
  Effect.gen(function* () {
    expect((yield* network({})).keys(keys)).toEqual({ later_limit: 7 })
    expect((yield* network({ later_contract: "C1", later_limit: 9 })).keys(keys)).toEqual({
      later_contract: "C1",
      later_limit: 9
    })
  })
)

it.effect("a scheme's own fee ceilings hold where the settings name none", () =>
  Effect.gen(function* () {
    const own = { resourceStroopsMax: 9n, inclusionStroopsMax: 2n, totalStroopsMax: 10n }
    const declared = networkKeys("x402-dear", {}, undefined, { dear: own })
    const ceilings = (fees: object) =>
      Effect.map(Network, ({ feeCeilings }) => feeCeilings).pipe(
        Effect.provide(Network.layer),
        Effect.provide(
          Settings.layerTest(
            { networks: { "ledger:testnet": { enabled: true, rpc_urls: ["http://rpc"], fees } } },
            undefined,
            [declared]
          )
        )
      )
    const unset = yield* ceilings({})
    expect(unset("dear")).toEqual(own)
    expect(unset("other").totalStroopsMax).toBe(210_000n)
    const set = yield* ceilings({ dear: { max_resource_fee_stroops: 7 } })
    expect(set("dear").resourceStroopsMax).toBe(7n)
  })
)

it.effect("refuses network keys that are ill-typed or not contributed", () =>
  Effect.gen(function* () {
    for (const wrong of [{ later_limit: 10 }, { later_contract: 5 }, { latter_contract: "C1" }]) {
      const refused = yield* Effect.flip(network(wrong))
      expect(refused.path).toMatch(/^networks\.ledger:testnet\./)
      expect(`${refused.path} ${refused.message}`).toContain(Object.keys(wrong)[0])
    }
  })
)

it.effect("describes contributed network keys among the settings", () =>
  Effect.sync(() => {
    const described = JSON.stringify(Schema.toJsonSchemaDocument(networksSection([keys]).schema).schema)
    expect(described).toContain("later_limit")
    expect(described).toContain("How much of it.")
    expect(described).toContain("rpc_urls")
  })
)

it.effect("network keys report issues that block pubnet", () =>
  Effect.gen(function* () {
    const issuesOf = (later_contract?: string) =>
      Effect.map(
        decodeSection(networksSection([keys]), {
          networks: { "ledger:pubnet": later_contract ? { later_contract } : {} }
        }),
        (networks) => pubnetIssues([keys], networks["ledger:pubnet"]!)
      )
    expect(yield* issuesOf("C1")).toEqual(["x402-later: not reviewed yet"])
    expect(yield* issuesOf()).toEqual([])
  })
)
