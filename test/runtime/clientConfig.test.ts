// The output of `tollkeeper tools --print-config` for each client. The registry's entry is checked against the rules of
// its published schema (`server.schema.json` of 2025-12-11), as far as they concern a server at a public address.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Ajv } from "ajv"
import { Effect, FileSystem, Path } from "effect"
import { fileURLToPath } from "node:url"
import process from "node:process"
import type { ClientForm } from "../../runtime/clientConfig.ts"
import { printConfig } from "../../runtime/commands/printConfig.ts"
import { version } from "../../runtime/version.ts"

const keyValue = {
  type: "object",
  required: ["name"],
  properties: {
    name: { type: "string" },
    value: { type: "string" },
    variables: {
      type: "object",
      additionalProperties: {
        type: "object",
        properties: {
          description: { type: "string" },
          isRequired: { type: "boolean" },
          isSecret: { type: "boolean" },
          format: { enum: ["string", "number", "boolean", "filepath"] }
        }
      }
    }
  }
}
const remote = {
  type: "object",
  required: ["type", "url"],
  properties: {
    type: { enum: ["streamable-http", "sse"] },
    url: { type: "string", pattern: "^https://" },
    headers: { type: "array", items: keyValue }
  }
}
const entrySchema = {
  type: "object",
  required: ["name", "description", "version"],
  // The schema itself allows other members; the registry does not need any.
  additionalProperties: false,
  properties: {
    $schema: { const: "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json" },
    name: { type: "string", minLength: 3, maxLength: 200, pattern: "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$" },
    title: { type: "string", minLength: 1, maxLength: 100 },
    description: { type: "string", minLength: 1, maxLength: 100 },
    version: { type: "string", maxLength: 255, pattern: "^[0-9]+\\.[0-9]+\\.[0-9]+$" },
    remotes: { type: "array", minItems: 1, items: remote }
  }
}
const isEntry = new Ajv().compile(entrySchema)

const hosted = ["http.allowed_hosts=[tools.example.com]"]
const paying = ["plugins=[mcp-tools, mcp-tools-pay]", "signer.mode=env-secret"]

/** With variables set for as long as it runs; the settings' secrets come from this process. */
const printed = (
  form: ClientForm,
  place: { readonly profile?: string; readonly set?: ReadonlyArray<string> },
  variables: Readonly<Record<string, string>> = {}
) =>
  Effect.acquireUseRelease(
    Effect.sync(() => Object.assign(process.env, variables)),
    () => printConfig(form, { profile: "tools", state: ".tollkeeper", set: [], ...place }, []),
    () => Effect.sync(() => Object.keys(variables).forEach((name) => delete process.env[name]))
  ).pipe(Effect.provide(NodeServices.layer))

const asJson = (text: string) => JSON.parse(text) as any

it.effect("a hosted server's registry entry equals the example and follows the schema", () =>
  Effect.gen(function* () {
    const place = { profile: "tools-hosted", set: hosted }
    const text = yield* printed("registry", place, { TOOLS_API_KEYS: "0123456789abcdef" })
    expect(isEntry(asJson(text)) ? [] : isEntry.errors).toEqual([])
    const example = yield* (yield* FileSystem.FileSystem).readFileString(
      fileURLToPath(new URL("../../examples/server.json", import.meta.url))
    )
    expect(asJson(example)).toEqual(asJson(text))
    expect(asJson(text)).toMatchObject({
      name: "com.example.tools/tollkeeper",
      version,
      remotes: [{ type: "streamable-http", url: "https://tools.example.com/mcp" }, { type: "sse" }]
    })
    expect(text).not.toContain("0123456789abcdef")
    // Without keys, the entry asks no client for one.
    expect(asJson(yield* printed("registry", place)).remotes[0]).not.toHaveProperty("headers")
    for (const wrong of [{ name: "tollkeeper" }, { description: "x".repeat(101) }, { version: "^0.1.0" }])
      expect(isEntry({ ...asJson(text), ...wrong })).toBe(false)
  }).pipe(Effect.provide(NodeServices.layer))
)

it.effect("a server without a public name has no registry entry", () =>
  Effect.gen(function* () {
    for (const place of [
      {},
      { profile: "tools-hosted" },
      { profile: "tools-hosted", set: ["http.allowed_hosts=[localhost]"] },
      { profile: "tools-hosted", set: ["http.allowed_hosts=[192.0.2.7]"] }
    ])
      expect(yield* Effect.flip(printed("registry", place))).toMatchObject({ path: "http.allowed_hosts" })
  })
)

it.effect("a client over HTTP receives the server's address and required key [S187]", () =>
  Effect.gen(function* () {
    const keys = { TOOLS_API_KEYS: "0123456789abcdef" }
    const place = { profile: "tools-hosted", set: hosted }
    expect(asJson(yield* printed("any", place, keys)).mcpServers.tollkeeper).toEqual({
      type: "streamable-http",
      url: "https://tools.example.com/mcp",
      headers: { Authorization: "Bearer ${TOOLS_API_KEY}" }
    })
    expect(asJson(yield* printed("vscode", place, keys))).toEqual({
      inputs: [{ type: "promptString", id: "TOOLS_API_KEY", description: "TOOLS_API_KEY", password: true }],
      servers: {
        tollkeeper: {
          type: "http",
          url: "https://tools.example.com/mcp",
          headers: { Authorization: "Bearer ${input:TOOLS_API_KEY}" }
        }
      }
    })
    expect(yield* printed("codex", place, keys)).toBe(
      '[mcp_servers.tollkeeper]\nurl = "https://tools.example.com/mcp"\nbearer_token_env_var = "TOOLS_API_KEY"'
    )
    const near = { set: ["transport=http", "http.port=4600"] }
    expect(asJson(yield* printed("vscode", near))).toEqual({
      servers: { tollkeeper: { type: "http", url: "http://127.0.0.1:4600/mcp" } }
    })
    const six = { set: ["transport=http", 'http.host="::1"'] }
    expect(asJson(yield* printed("any", six)).mcpServers.tollkeeper.url).toBe("http://[::1]:4522/mcp")
  })
)

it.effect("a client that starts the server passes secrets by name only [S252]", () =>
  Effect.gen(function* () {
    const seed = "the-seed-itself"
    for (const form of ["any", "vscode", "codex"] as const)
      expect(yield* printed(form, { set: paying }, { TOOLS_PAYER_SECRET: seed })).not.toContain(seed)
    const any = asJson(yield* printed("any", { set: paying })).mcpServers.tollkeeper
    expect(any.env).toEqual({ TOOLS_PAYER_SECRET: "${TOOLS_PAYER_SECRET}" })
    expect(any.args).toEqual(expect.arrayContaining(["tools", "signer.mode=env-secret"]))
    const { inputs, servers } = asJson(yield* printed("vscode", { set: paying }))
    expect([inputs[0].id, servers.tollkeeper.env]).toEqual([
      "TOOLS_PAYER_SECRET",
      { TOOLS_PAYER_SECRET: "${input:TOOLS_PAYER_SECRET}" }
    ])
    const shared = { set: [...paying, "budget.store=postgres"] }
    expect(yield* printed("codex", shared)).toContain('env_vars = ["TOOLS_PAYER_SECRET","DATABASE_URL"]')
    expect(asJson(yield* printed("any", {})).mcpServers.tollkeeper).not.toHaveProperty("env")
    // If a secret is read from a file here, the client's process reads it from that file too.
    const file = (yield* Path.Path).join(yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped(), "seed")
    yield* (yield* FileSystem.FileSystem).writeFileString(file, seed)
    const filed = yield* printed("any", { set: paying }, { TOOLS_PAYER_SECRET_FILE: file })
    expect(asJson(filed).mcpServers.tollkeeper.env).toEqual({ TOOLS_PAYER_SECRET_FILE: file })
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)

it.effect("settings that would end the start are refused instead of printed", () =>
  Effect.gen(function* () {
    const refused = yield* Effect.flip(printed("any", { set: ["transport=http", "signer.mode=env-secret"] }))
    expect(refused).toMatchObject({ path: "signer.mode" })
  })
)
