// The official MCP suite in both revisions, against a tool server in this process: the part of `npm run conformance --
// mcp` that needs no facilitator.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { substituteJson, startTools, listedResource, pageOf } from "../plugins/mcp-tools/support.ts"
import { installMcp, suiteCases } from "./mcpCases.ts"
import type { Part } from "./report.ts"

it.live(
  "the official suite holds in both revisions at the stock rate limit, one after the other [S182, S238]",
  () =>
    Effect.gen(function* () {
      yield* Effect.promise(() => installMcp(() => undefined))
      const facilitatorUrl = yield* substituteJson(pageOf(listedResource()))
      const url = yield* startTools({ facilitatorUrl })
      const failed: Array<string> = []
      let held = 0
      const part: Part = {
        check: async (sentence, work) => {
          try {
            await work()
            held += 1
            return true
          } catch (error) {
            failed.push(`${sentence}: ${String(error)}`)
            return false
          }
        },
        figure: () => undefined
      }
      for (const revision of ["2025-11-25", "2026-07-28"] as const)
        yield* Effect.promise(() => suiteCases(`${url}/mcp`, revision, part))
      expect(failed).toEqual([])
      expect(held).toBe(16)
    }).pipe(Effect.scoped),
  300_000
)
