// Lints the described interface with a tool that its users use: OpenAPI 3.1, with every plugin of the local profile
// enabled.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { startFacilitator } from "../../support/facilitator.ts"

const program = createRequire(import.meta.url).resolve("@redocly/cli/bin/cli.js")
const config = fileURLToPath(new URL("redocly.yaml", import.meta.url))

/** The linter's output, and whether it reported issues. */
const lint = (document: unknown) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "tollkeeper-openapi-"))),
    (folder) =>
      Effect.promise(() => {
        const file = join(folder, "openapi.json")
        writeFileSync(file, JSON.stringify(document))
        return new Promise<{ readonly passes: boolean; readonly said: string }>((resolve) =>
          execFile(
            process.execPath,
            [program, "lint", "--config", config, "--format", "stylish", file],
            {
              env: { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true", NO_COLOR: "1" }
            },
            (error, out, err) => resolve({ passes: error === null, said: `${out}${err}` })
          )
        )
      }),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )

it.live(
  "OpenAPI passes the linter, which detects an injected error [S306, S307]",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator({ channels: 1 })
      const document = (yield* facilitator.ask("/openapi.json")).json
      const honest = yield* lint(document)
      expect(honest.passes, honest.said).toBe(true)
      expect(honest.said).not.toContain("warning")
      const broken = structuredClone(document)
      broken.paths["/verify"].post.requestBody.content["application/json"].schema = { $ref: "#/components/schemas/No" }
      expect((yield* lint(broken)).passes).toBe(false)
      const twice = structuredClone(document)
      twice.paths["/settle"].post.operationId = "verify"
      expect((yield* lint(twice)).passes).toBe(false)
      const untyped = structuredClone(document)
      untyped.components.schemas.Settlement.properties.ledger.type = "number of a ledger"
      expect((yield* lint(untyped)).passes).toBe(false)
    }).pipe(Effect.scoped),
  240_000
)
