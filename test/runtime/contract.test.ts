// The settings that the specification names, under their names, with the defaults that were decided, in a process
// without any profile and in the shipped ones.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { readFileSync } from "node:fs"
import { networksSection } from "../../kernel/config/Network.ts"
import { decodeSection } from "../../kernel/config/Settings.ts"
import { interfaceVersion } from "../../kernel/http/OpenApi.ts"
import { select } from "../../kernel/plugin/Loader.ts"
import { declaredSettings, makeCatalogue } from "../../runtime/App.ts"
import { loadProfile } from "../../runtime/profile.ts"

const noSecret = () => Option.none()
const declared = declaredSettings({ tree: {}, secret: noSecret })

/** All settings of a tree, defaults included. */
const settingsOf = (tree: Readonly<Record<string, unknown>>) =>
  Effect.map(
    Effect.forEach([...declared.sections], ([name, section]) =>
      Effect.map(decodeSection(section as never, tree), (values) => [name, values as unknown] as const)
    ),
    (entries) => Object.fromEntries(entries) as Readonly<Record<string, any>>
  )

const at = (values: unknown, path: string): unknown =>
  path.split(".").reduce<any>((value, name) => value?.[name], values)

const profileOf = (name: string) =>
  Effect.flatMap(loadProfile(name, [], {}), (profile) =>
    Effect.map(settingsOf(profile.tree), (values) => ({ ...profile, values }))
  ).pipe(Effect.provide(NodeServices.layer))

const decided: ReadonlyArray<readonly [path: string, value: unknown]> = [
  ["api_keys_env", "FACILITATOR_API_KEYS"],
  ["indexing.auto_catalog", true],
  ["indexing.index_on", "verified"],
  ["indexing.require_valid_schema", true],
  ["indexing.max_metadata_bytes", 131_072],
  ["indexing.max_schema_bytes", 65_536],
  ["indexing.max_example_bytes", 16_384],
  ["indexing.stale_after_hours", 168],
  ["discovery.include_stale", false],
  ["discovery.include_unverified", false],
  ["network_security.resolved_mcp_endpoints", {}],
  ["search.semantic.timeout_ms", 5_000],
  ["analytics.redact_addresses", false],
  ["analytics.default_page_size", 50],
  ["analytics.max_page_size", 200],
  ["limits.channel_lease_ms", 5_000],
  ["limits.max_pending_settlements", 1_000],
  ["limits.settle_poll_ms", 500],
  ["limits.settle_timeout_ms", 25_000],
  ["limits.recovery_ms", 15_000],
  ["limits.rpc_timeout_ms", 5_000],
  ["limits.max_sponsored_stroops_per_key_per_day", 5_000_000n],
  ["limits.max_global_sponsored_stroops_per_day", 200_000_000n],
  ["limits.expiry_tolerance_ledgers", 4],
  ["limits.verify_per_second", 50],
  ["limits.settle_per_second", 20],
  ["server.max_request_bytes", 262_144],
  ["signer.mode", "none"],
  ["http.api_keys_env", "TOOLS_API_KEYS"],
  ["http.port", 4_522],
  ["allow_insecure_local", false]
]

it.effect("each setting of the specification has its name and its decided default [S285–S300, S302–S305, S332]", () =>
  Effect.gen(function* () {
    const values = yield* settingsOf({})
    for (const [path, value] of decided) expect([path, at(values, path)]).toEqual([path, value])
  })
)

it.effect("a tool server has default caps and budgets without settings [S333]", () =>
  Effect.gen(function* () {
    const { values } = yield* profileOf("tools")
    expect(values["network_security"]).toMatchObject({
      max_response_bytes: 8 * 1_048_576,
      timeout_ms: 15_000,
      max_redirects: 3,
      max_json_depth: 32,
      max_concurrent_connections: 10
    })
    expect(values["budget"]).toMatchObject({ max_per_call: 1_000_000n, max_per_day: 50_000_000n })
  })
)

it.effect("automatic funding and calibrated ceilings are off by default; local funds itself [S301]", () =>
  Effect.gen(function* () {
    const networks = networksSection(declared.networkKeys)
    const bare = yield* decodeSection(networks, { networks: { "ledger:testnet": { enabled: true } } })
    expect(bare["ledger:testnet"]).toMatchObject({ development_auto_fund: false, fee_ceilings_calibrated: false })
    for (const [name, funds] of [
      ["local", true],
      ["hosted", false],
      ["self-hosted", false]
    ] as const) {
      const { tree } = yield* profileOf(name)
      const found = yield* decodeSection(networks, tree)
      expect(Object.values(found).map((one) => [name, one.development_auto_fund, one.fee_ceilings_calibrated])).toEqual(
        [[name, funds, false]]
      )
    }
  })
)

it.effect("no shipped profile serves a channel store to callers without a key", () =>
  Effect.gen(function* () {
    for (const name of ["local", "hosted", "self-hosted"])
      expect((yield* profileOf(name)).values["batch_store"].allow_keyless, name).toBe(false)
  })
)

it.effect("the hosted profile waits 5 s for a model and pays nothing [S30, S296]", () =>
  Effect.gen(function* () {
    expect((yield* profileOf("hosted")).values["search"].semantic.timeout_ms).toBe(5_000)
    const { plugins, tree, values } = yield* profileOf("tools-hosted")
    expect([plugins, values["signer"].mode, values["transport"]]).toEqual([["mcp-tools"], "none", "http"])
    // It listens only on this machine until keys or a host are set.
    expect(values["http"].host).toBeUndefined()
    expect(Object.keys(tree["networks"] as object)).toEqual(["ledger:testnet"])
    // It requires no database, no ledger, and nothing that signs.
    const started = yield* select(makeCatalogue({ tree, secret: noSecret }), plugins)
    expect(started.map(({ id }) => id)).toEqual(["settings", "supervisor", "config", "mcp-tools"])
  })
)

it.effect(
  "the specification's seven plugins are part of the program, and a profile enables them by their ids [S339]",
  () =>
    Effect.gen(function* () {
      const named = [
        "x402-exact",
        "x402-upto",
        "catalog",
        "search-lexical",
        "search-semantic",
        "analytics",
        "mcp-tools"
      ]
      const catalogue = makeCatalogue({ tree: {}, secret: noSecret })
      for (const id of named)
        expect(
          (yield* select(catalogue, ["ledger-local", "x402-exact", "catalog", id])).map((one) => one.id)
        ).toContain(id)
    })
)

it("a change of a specified name requires a new interface version [S335]", () => {
  const record = readFileSync(new URL("../../kernel/decisions/rules.md", import.meta.url), "utf8")
  expect(record).toMatch(/\*\*Compatibility\.\*\*[^]*0\.1\.0[^]*deprecated/)
  expect(interfaceVersion).toBe("0.1.0")
})
